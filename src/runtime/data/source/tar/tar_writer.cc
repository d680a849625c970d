#include "runtime/data/source/tar/tar_writer.h"

#include <cassert>
#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"
#include "runtime/data/source/tar/tar.h"

namespace tutti::data {
namespace {

constexpr size_t kMaxTarName = 100;

std::string TarHeaderBlock(absl::string_view name, size_t size) {
  std::string block(kTarBlock, '\0');
  const auto put = [&](size_t offset, absl::string_view text) {
    std::memcpy(block.data() + offset, text.data(), text.size());
  };
  put(0, name);
  put(100, "0000644");  // mode
  put(108, "0000000");  // user and group
  put(116, "0000000");
  put(124, absl::StrFormat("%011o", size));
  put(136, "00000000000");  // of 1970: the same archive every time
  put(148, "        ");     // the checksum, taken as spaces
  block[156] = '0';
  put(257, absl::string_view("ustar\00000", 8));
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<uint8_t>(c);
  put(148, absl::StrFormat("%06o", sum));
  block[154] = '\0';
  return block;
}

}  // namespace

void TarWriter::Add(absl::string_view name, absl::string_view content) {
  assert(name.size() <= kMaxTarName);
  archive_ += TarHeaderBlock(name.substr(0, kMaxTarName), content.size());
  archive_.append(content.data(), content.size());
  archive_.resize((archive_.size() + kTarBlock - 1) / kTarBlock * kTarBlock, '\0');
}

std::string TarWriter::Finish() {
  archive_.append(2 * kTarBlock, '\0');
  return std::exchange(archive_, {});
}

}  // namespace tutti::data
