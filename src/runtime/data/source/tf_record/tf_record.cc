#include "runtime/data/source/tf_record/tf_record.h"

#include "absl/strings/str_cat.h"
#include "runtime/data/source/tf_record/masked_crc32c.h"

namespace tutti::data {
namespace {

constexpr uint64_t kLengthBytes = 8, kChecksumBytes = 4;

absl::Status LostRecord(uint64_t offset, absl::string_view what) {
  return absl::DataLossError(absl::StrCat("the record at byte ", offset, " ", what));
}

template <typename Number>
Number LittleEndian(absl::string_view bytes) {
  Number value = 0;
  for (size_t i = sizeof(Number); i-- > 0;) {
    value = static_cast<Number>(value << 8 | static_cast<uint8_t>(bytes[i]));
  }
  return value;
}

}  // namespace

absl::StatusOr<std::optional<TfRecord>> TfRecordReader::Next() {
  const absl::string_view rest = file_.substr(position_);
  if (rest.empty()) return std::nullopt;
  constexpr uint64_t kHead = kLengthBytes + kChecksumBytes;
  if (rest.size() < kHead) return LostRecord(position_, "is cut short in its length");
  const absl::string_view length_bytes = rest.substr(0, kLengthBytes);
  const auto length = LittleEndian<uint64_t>(length_bytes);
  if (LittleEndian<uint32_t>(rest.substr(kLengthBytes)) != MaskedCrc32c(length_bytes)) {
    return LostRecord(position_, "has a wrong checksum of its length (damaged, or no TFRecord)");
  }
  const uint64_t left = rest.size() - kHead;
  if (left < kChecksumBytes || length > left - kChecksumBytes) {
    return LostRecord(position_, absl::StrCat("is cut short: it has ", length, " bytes, but only ",
                                              left, " are left"));
  }
  TfRecord record{position_, rest.substr(kHead, length),
                  LittleEndian<uint32_t>(rest.substr(kHead + length))};
  position_ += kHead + length + kChecksumBytes;
  return record;
}

absl::Status CheckData(const TfRecord& record) {
  if (MaskedCrc32c(record.data) == record.checksum) return absl::OkStatus();
  return LostRecord(record.offset, "has a wrong checksum: its data are damaged");
}

}  // namespace tutti::data
