#include "runtime/data/source/tf_record/tf_example.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tutti::data {
namespace {

enum WireType { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

absl::Status NoExample(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("not a tf.train.Example: ", what));
}

struct WireField {
  uint64_t number = 0;
  int type = 0;
  uint64_t value = 0;       // of a varint
  absl::string_view bytes;  // of kBytes
};

class WireReader {
 public:
  explicit WireReader(absl::string_view message) : rest_(message) {}
  bool done() const { return rest_.empty(); }

  absl::StatusOr<uint64_t> Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) return NoExample("a number is cut short");
      const auto byte = static_cast<uint8_t>(rest_[0]);
      rest_.remove_prefix(1);
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    return NoExample("a number is too long");
  }

  absl::StatusOr<WireField> Next() {
    TUTTI_ASSIGN_OR_RETURN(const uint64_t tag, Varint());
    WireField field{tag >> 3, static_cast<int>(tag & 7)};
    uint64_t size = 0;
    switch (field.type) {
      case kVarint: {
        TUTTI_ASSIGN_OR_RETURN(field.value, Varint());
        return field;
      }
      case kFixed64:
        size = 8;
        break;
      case kFixed32:
        size = 4;
        break;
      case kBytes: {
        TUTTI_ASSIGN_OR_RETURN(size, Varint());
        break;
      }
      default:
        return NoExample(absl::StrCat("wire type ", field.type));
    }
    if (size > rest_.size()) return NoExample("a field is cut short");
    field.bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return field;
  }

 private:
  absl::string_view rest_;
};

// Calls `visit(bytes)` for every field of this number that holds bytes.
template <typename Visit>
absl::Status ForEach(absl::string_view message, uint64_t number, const Visit& visit) {
  WireReader reader(message);
  while (!reader.done()) {
    TUTTI_ASSIGN_OR_RETURN(const WireField field, reader.Next());
    if (field.number == number && field.type == kBytes) TUTTI_RETURN_IF_ERROR(visit(field.bytes));
  }
  return absl::OkStatus();
}

// The first value of Feature.int64_list, packed or not.
absl::StatusOr<std::optional<int64_t>> FirstInteger(absl::string_view feature) {
  std::optional<int64_t> first;
  const absl::Status read = ForEach(feature, 3, [&](absl::string_view list) -> absl::Status {
    WireReader values(list);
    if (values.done() || first) return absl::OkStatus();
    TUTTI_ASSIGN_OR_RETURN(const WireField value, values.Next());
    uint64_t number = value.value;
    if (value.type == kBytes) {
      if (value.bytes.empty()) return absl::OkStatus();
      TUTTI_ASSIGN_OR_RETURN(number, WireReader(value.bytes).Varint());
    }
    first = static_cast<int64_t>(number);
    return absl::OkStatus();
  });
  if (!read.ok()) return read;
  return first;
}

// The first value of Feature.bytes_list; empty without one.
absl::StatusOr<absl::string_view> FirstBytes(absl::string_view feature) {
  absl::string_view first;
  const absl::Status read = ForEach(feature, 1, [&](absl::string_view list) {
    return ForEach(list, 1, [&](absl::string_view value) {
      if (first.empty()) first = value;
      return absl::OkStatus();
    });
  });
  if (!read.ok()) return read;
  return first;
}

struct NamedFeature {
  absl::string_view name, feature;
};

absl::StatusOr<NamedFeature> ReadEntry(absl::string_view entry) {
  NamedFeature named;
  WireReader reader(entry);
  while (!reader.done()) {
    TUTTI_ASSIGN_OR_RETURN(const WireField field, reader.Next());
    if (field.type == kBytes && field.number == 1) named.name = field.bytes;
    if (field.type == kBytes && field.number == 2) named.feature = field.bytes;
  }
  return named;
}

absl::Status Take(const NamedFeature& named, ImageExample& example, absl::string_view& text) {
  if (named.name == "image/class/label") {
    TUTTI_ASSIGN_OR_RETURN(example.label, FirstInteger(named.feature));
    return absl::OkStatus();
  }
  absl::string_view* to = named.name == "image/encoded"        ? &example.image
                          : named.name == "image/class/synset" ? &example.class_name
                          : named.name == "image/class/text"   ? &text
                          : named.name == "image/filename"     ? &example.file_name
                                                               : nullptr;
  if (to == nullptr) return absl::OkStatus();
  TUTTI_ASSIGN_OR_RETURN(*to, FirstBytes(named.feature));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ImageExample> ParseImageExample(absl::string_view message) {
  ImageExample example;
  absl::string_view text;
  TUTTI_RETURN_IF_ERROR(ForEach(message, 1, [&](absl::string_view features) {
    return ForEach(features, 1, [&](absl::string_view entry) -> absl::Status {
      TUTTI_ASSIGN_OR_RETURN(const NamedFeature named, ReadEntry(entry));
      return Take(named, example, text);
    });
  }));
  if (example.class_name.empty()) example.class_name = text;
  if (example.image.empty()) {
    return absl::InvalidArgumentError("an Example without an image (image/encoded)");
  }
  if (!example.label) {
    return absl::InvalidArgumentError("an Example without a label (image/class/label)");
  }
  return example;
}

}  // namespace tutti::data
