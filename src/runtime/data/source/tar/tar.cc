#include "runtime/data/source/tar/tar.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cstring>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"

namespace tutti::data {
namespace {

// Where the fields lie in a header block.
struct Field {
  size_t offset, size;
};
constexpr Field kName{0, 100}, kSize{124, 12}, kChecksum{148, 8}, kMagic{257, 8}, kPrefix{345, 155};
constexpr size_t kType = 156;
constexpr uint64_t kMaxNameBytes = 1 << 16;  // of GNU long names and pax headers

using Block = std::span<const uint8_t, kTarBlock>;

absl::string_view Bytes(Block block, Field field) {
  return {reinterpret_cast<const char*>(block.data()) + field.offset, field.size};
}

absl::string_view UpToNul(absl::string_view text) { return text.substr(0, text.find('\0')); }

// Octal digits between spaces and NULs; GNU's base-256 when the first bit is set.
std::optional<uint64_t> ParseNumber(absl::string_view field) {
  if ((field[0] & 0x80) != 0) {
    uint64_t value = static_cast<uint8_t>(field[0]) & 0x7F;
    for (const char c : field.substr(1)) {
      if (value >> 55 != 0) return std::nullopt;
      value = value << 8 | static_cast<uint8_t>(c);
    }
    return value;
  }
  field = UpToNul(field);
  while (!field.empty() && field.front() == ' ') field.remove_prefix(1);
  while (!field.empty() && field.back() == ' ') field.remove_suffix(1);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value, 8);
  if (error != std::errc() || end != field.data() + field.size()) return std::nullopt;
  return value;
}

// The sum of the header's bytes, its checksum field taken as spaces. Old writers summed signed
// bytes.
bool ChecksumMatches(Block block) {
  const std::optional<uint64_t> stored = ParseNumber(Bytes(block, kChecksum));
  int64_t as_unsigned = 0, as_signed = 0;
  for (size_t i = 0; i < block.size(); ++i) {
    const bool blank = i >= kChecksum.offset && i < kChecksum.offset + kChecksum.size;
    const uint8_t byte = blank ? uint8_t{' '} : block[i];
    as_unsigned += byte;
    as_signed += static_cast<int8_t>(byte);
  }
  return stored.has_value() && (static_cast<int64_t>(*stored) == as_unsigned ||
                                static_cast<int64_t>(*stored) == as_signed);
}

bool AllZero(absl::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) { return c == '\0'; });
}

uint64_t RoundUp(uint64_t size) { return (size + kTarBlock - 1) / kTarBlock * kTarBlock; }

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

absl::StatusOr<TarHeader> ParseTarHeader(Block block) {
  if (!ChecksumMatches(block)) {
    return absl::DataLossError("the header's checksum is wrong (damaged, or no tar archive)");
  }
  TarHeader header;
  header.type = static_cast<char>(block[kType]);
  header.name = std::string(UpToNul(Bytes(block, kName)));
  // Only POSIX's magic promises a prefix; GNU's keeps other things there.
  if (Bytes(block, kMagic).substr(0, 6) == absl::string_view("ustar\0", 6)) {
    const absl::string_view prefix = UpToNul(Bytes(block, kPrefix));
    if (!prefix.empty()) header.name = absl::StrCat(prefix, "/", header.name);
  }
  const std::optional<uint64_t> size = ParseNumber(Bytes(block, kSize));
  if (!size) {
    return absl::DataLossError(
        absl::StrCat("the size of ", absl::Utf8SafeCEscape(header.name), " is no number"));
  }
  header.size = *size;
  return header;
}

absl::Status TarReader::Lost(uint64_t offset, absl::string_view what) const {
  return absl::DataLossError(absl::StrCat("at byte ", offset, " of ", archive_.size(), ": ", what));
}

absl::Status TarReader::CheckEnd() const {
  const absl::string_view rest = archive_.substr(position_);
  if (AllZero(rest)) return absl::OkStatus();
  return Lost(position_, "data after the end of the archive (archives joined by cat?)");
}

absl::StatusOr<std::optional<TarHeader>> TarReader::NextHeader() {
  header_ = position_;
  if (archive_.size() - position_ < kTarBlock) {
    return Lost(position_, position_ == archive_.size()
                               ? "cut short: the archive's closing block is missing"
                               : "cut short in a header");
  }
  const absl::string_view bytes = archive_.substr(position_, kTarBlock);
  if (AllZero(bytes)) {
    TUTTI_RETURN_IF_ERROR(CheckEnd());
    return std::nullopt;
  }
  const Block block(reinterpret_cast<const uint8_t*>(bytes.data()), kTarBlock);
  absl::StatusOr<TarHeader> header = ParseTarHeader(block);
  if (!header.ok()) return Lost(position_, header.status().message());
  position_ += kTarBlock;
  return *std::move(header);
}

absl::StatusOr<absl::string_view> TarReader::TakeContent(const TarHeader& header) {
  const uint64_t left = archive_.size() - position_;
  if (header.size > left || RoundUp(header.size) > left) {
    return Lost(header_, absl::StrCat("cut short: ", absl::Utf8SafeCEscape(header.name), " has ",
                                      header.size, " bytes, but only ", left, " are left"));
  }
  const absl::string_view content = archive_.substr(position_, header.size);
  position_ += RoundUp(header.size);
  return content;
}

// Records are "LENGTH KEY=VALUE\n", LENGTH counting the whole record.
absl::Status TarReader::ReadPax(absl::string_view records) {
  while (!records.empty()) {
    size_t length = 0;
    const auto [end, error] =
        std::from_chars(records.data(), records.data() + records.size(), length);
    const size_t key = static_cast<size_t>(end - records.data()) + 1;
    if (error != std::errc() || length > records.size() || length <= key || end[0] != ' ' ||
        records[length - 1] != '\n') {
      return Lost(header_, "a pax record is malformed");
    }
    const absl::string_view record = records.substr(key, length - key - 1);
    const size_t equals = record.find('=');
    if (equals == absl::string_view::npos) return Lost(header_, "a pax record has no =");
    const absl::string_view value = record.substr(equals + 1);
    if (absl::StartsWith(record, "path=")) name_ = std::string(value);
    if (absl::StartsWith(record, "size=")) {
      uint64_t size = 0;
      const auto parsed = std::from_chars(value.data(), value.data() + value.size(), size);
      if (parsed.ec != std::errc() || parsed.ptr != value.data() + value.size()) {
        return Lost(header_, "a pax size is no number");
      }
      size_ = size;
    }
    records.remove_prefix(length);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<TarMember>> TarReader::Next() {
  while (true) {
    TUTTI_ASSIGN_OR_RETURN(std::optional<TarHeader> header, NextHeader());
    if (!header) return std::nullopt;
    const bool names_the_next = header->type == 'L' || header->type == 'x';
    if (names_the_next && header->size > kMaxNameBytes) {
      return Lost(header_, absl::StrCat("a long name of ", header->size, " bytes"));
    }
    if (!names_the_next && name_) header->name = *std::exchange(name_, std::nullopt);
    if (!names_the_next && size_) header->size = *std::exchange(size_, std::nullopt);
    TUTTI_ASSIGN_OR_RETURN(const absl::string_view content, TakeContent(*header));
    switch (header->type) {
      case 'L':
        name_ = std::string(UpToNul(content));
        break;
      case 'x':
        TUTTI_RETURN_IF_ERROR(ReadPax(content));
        break;
      case 'S':
      case 'M':
        return Lost(header_, absl::StrCat(absl::Utf8SafeCEscape(header->name),
                                          ": sparse and multi-volume members are not supported"));
      case '0':
      case '\0':
      case '7':
        return TarMember{std::move(header->name), header_, content};
      default:  // folders, links, devices, pax globals, GNU long link names
        break;
    }
  }
}

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
