#include "runtime/data/source/tf_record/tf_record_fake.h"

#include "runtime/data/source/tf_record/masked_crc32c.h"

namespace tutti::data {
namespace {

std::string EncodeVarint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes += static_cast<char>(value);
}

std::string EncodeBytes(int field, absl::string_view bytes) {
  std::string encoded = EncodeVarint(static_cast<uint64_t>(field) << 3 | 2);
  encoded += EncodeVarint(bytes.size());
  return encoded.append(bytes.data(), bytes.size());
}

std::string EncodeFeature(absl::string_view name, absl::string_view feature) {
  return EncodeBytes(1, EncodeBytes(1, name) + EncodeBytes(2, feature));
}

std::string EncodeBytesFeature(absl::string_view name, absl::string_view value) {
  return value.empty() ? "" : EncodeFeature(name, EncodeBytes(1, EncodeBytes(1, value)));
}

template <typename Number>
std::string LittleEndianBytes(Number value) {
  std::string bytes;
  for (size_t i = 0; i < sizeof value; ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

}  // namespace

std::string EncodeExample(const FakeExample& example) {
  const std::string number = EncodeVarint(static_cast<uint64_t>(example.label));
  const std::string list = example.packed ? EncodeBytes(1, number) : std::string("\x08") + number;
  // A float_list of one value, 1.0f.
  const std::string floats = EncodeBytes(2, std::string("\x0a\x04\x00\x00\x80\x3f", 6));
  return EncodeBytes(1, EncodeFeature("image/object/bbox/xmin", floats) +
                            EncodeBytesFeature("image/encoded", example.image) +
                            EncodeFeature("image/class/label", EncodeBytes(3, list)) +
                            EncodeBytesFeature("image/class/synset", example.synset) +
                            EncodeBytesFeature("image/class/text", example.text) +
                            EncodeBytesFeature("image/filename", example.file_name));
}

std::string EncodeTfRecord(absl::string_view data) {
  const std::string length = LittleEndianBytes(uint64_t{data.size()});
  std::string record = length + LittleEndianBytes(MaskedCrc32c(length));
  record.append(data.data(), data.size());
  return record + LittleEndianBytes(MaskedCrc32c(data));
}

}  // namespace tutti::data
