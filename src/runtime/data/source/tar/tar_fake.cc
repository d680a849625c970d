#include "runtime/data/source/tar/tar_fake.h"

#include <zlib.h>
#include <zstd.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/data/source/tar/tar.h"

namespace tutti::data {

std::string Compress(absl::string_view bytes) {
  std::string packed(ZSTD_compressBound(bytes.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), bytes.data(), bytes.size(), 3));
  return packed;
}

std::string Deflate(absl::string_view bytes, Deflated as) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + (as == Deflated::kGzip ? 16 : 0), 8,
               Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

void FixTarChecksum(std::string& archive, size_t offset) {
  char* block = archive.data() + offset;
  std::memset(block + 148, ' ', 8);
  unsigned sum = 0;
  for (size_t i = 0; i < kTarBlock; ++i) sum += static_cast<uint8_t>(block[i]);
  const std::string octal = absl::StrFormat("%06o", sum);
  std::memcpy(block + 148, octal.data(), 6);
  block[154] = '\0';
}

TarBuilder& TarBuilder::AddHeader(absl::string_view name, uint64_t size, char type) {
  std::string block(kTarBlock, '\0');
  block.replace(0, std::min<size_t>(name.size(), 100), std::string(name.substr(0, 100)));
  block.replace(100, 7, "0000644");
  block.replace(124, 11, absl::StrFormat("%011o", size));
  block[156] = type;
  block.replace(257, 8, std::string("ustar\00000", 8));
  FixTarChecksum(block, 0);
  bytes_ += block;
  return *this;
}

TarBuilder& TarBuilder::Add(absl::string_view name, absl::string_view content, char type) {
  AddHeader(name, content.size(), type);
  absl::StrAppend(&bytes_, content);
  bytes_.resize((bytes_.size() + kTarBlock - 1) / kTarBlock * kTarBlock, '\0');
  return *this;
}

TarBuilder& TarBuilder::AddWithGnuName(absl::string_view name, absl::string_view content) {
  Add("././@LongLink", absl::StrCat(name, absl::string_view("\0", 1)), 'L');
  return Add(name.substr(0, 100), content);
}

TarBuilder& TarBuilder::AddWithPaxPath(absl::string_view name, absl::string_view content) {
  Add("PaxHeaders/x", PaxRecord("path", name), 'x');
  return Add(name.substr(0, 100), content);
}

std::string TarBuilder::Finish() const { return bytes_ + std::string(2 * kTarBlock, '\0'); }

std::string PaxRecord(absl::string_view key, absl::string_view value) {
  size_t length = key.size() + value.size() + 3;
  while (absl::StrCat(length, " ", key, "=", value, "\n").size() != length) ++length;
  return absl::StrCat(length, " ", key, "=", value, "\n");
}

}  // namespace tutti::data
