#include "runtime/checkpoint/safetensors_header.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tutti::checkpoint {
namespace {

using nlohmann::json;

constexpr size_t kLengthBytes = 8;
constexpr size_t kMaxDimensions = 16;
constexpr int kMaxDepth = 3;  // {"name": {"shape": [...]}}
constexpr absl::string_view kMetadata = "__metadata__";

struct TypeRow {
  TensorType type;
  absl::string_view name;
  int64_t bytes;
};
constexpr std::array<TypeRow, 10> kTypeRows = {{{TensorType::kBool, "BOOL", 1},
                                                {TensorType::kUint8, "U8", 1},
                                                {TensorType::kInt8, "I8", 1},
                                                {TensorType::kInt16, "I16", 2},
                                                {TensorType::kInt32, "I32", 4},
                                                {TensorType::kInt64, "I64", 8},
                                                {TensorType::kFloat16, "F16", 2},
                                                {TensorType::kBFloat16, "BF16", 2},
                                                {TensorType::kFloat32, "F32", 4},
                                                {TensorType::kFloat64, "F64", 8}}};

uint64_t LoadLittleEndian(absl::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    value |= uint64_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
  }
  return value;
}

std::string StoreLittleEndian(uint64_t value) {
  std::string bytes;
  for (size_t i = 0; i < kLengthBytes; ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

const TypeRow& RowOf(TensorType type) {
  return *std::find_if(kTypeRows.begin(), kTypeRows.end(),
                       [&](const TypeRow& row) { return row.type == type; });
}

absl::Status Bad(absl::string_view what) { return absl::DataLossError(what); }

absl::Status BadTensor(const std::string& name, absl::string_view what) {
  return absl::DataLossError(absl::StrCat("tensor \"", name, "\": ", what));
}

// The JSON object of the head. JSON leaves open what a name twice means; here it is an error.
absl::StatusOr<json> ParseObject(absl::string_view text) {
  std::set<std::string> names;
  std::string twice;
  bool too_deep = false;
  const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    too_deep |= depth > kMaxDepth;
    if (event == json::parse_event_t::key && depth == 1) {
      auto name = parsed.get<std::string>();
      if (!names.insert(name).second) twice = name;
    }
    return !too_deep;
  };
  json object = json::parse(text.begin(), text.end(), watch, /*allow_exceptions=*/false);
  if (too_deep) return Bad("the head is nested too deeply");
  if (!twice.empty()) return BadTensor(twice, "is there twice");
  if (!object.is_object()) return Bad("the head is not a JSON object");
  return object;
}

// The number of bytes that the shape takes. Zeros count as one, so that no product on the way (nor
// a stride made of them) overflows.
absl::StatusOr<uint64_t> BytesOf(const TensorRecord& tensor) {
  int64_t product = SizeOf(tensor.type);
  bool empty = false;
  for (int64_t dimension : tensor.shape) {
    empty |= dimension == 0;
    if (__builtin_mul_overflow(product, std::max<int64_t>(dimension, 1), &product)) {
      return BadTensor(tensor.name, "its shape is larger than any memory");
    }
  }
  return empty ? 0 : static_cast<uint64_t>(product);
}

absl::StatusOr<TensorType> ParseType(const std::string& tensor, const json& entry) {
  const auto it = entry.find("dtype");
  if (it == entry.end() || !it->is_string()) return BadTensor(tensor, "has no dtype");
  const auto& name = it->get_ref<const std::string&>();
  for (const TypeRow& row : kTypeRows) {
    if (row.name == name) return row.type;
  }
  return BadTensor(tensor, absl::StrCat("unknown dtype \"", name, "\""));
}

// An array of non-negative integers that fit int64.
absl::StatusOr<std::vector<int64_t>> ParseNumbers(const std::string& tensor, const json& entry,
                                                  const char* key, size_t at_most) {
  const auto it = entry.find(key);
  if (it == entry.end() || !it->is_array() || it->size() > at_most) {
    return BadTensor(tensor, absl::StrCat("has no ", key, " of at most ", at_most, " numbers"));
  }
  std::vector<int64_t> numbers;
  for (const json& number : *it) {
    if (!number.is_number_unsigned() || number.get<uint64_t>() > INT64_MAX) {
      return BadTensor(tensor, absl::StrCat(key, " holds ", number.dump()));
    }
    numbers.push_back(number.get<int64_t>());
  }
  return numbers;
}

absl::StatusOr<TensorRecord> ParseRecord(const std::string& name, const json& entry,
                                         uint64_t data_bytes) {
  if (!entry.is_object()) return BadTensor(name, "is not described by an object");
  TensorRecord tensor;
  tensor.name = name;
  TUTTI_ASSIGN_OR_RETURN(tensor.type, ParseType(name, entry));
  TUTTI_ASSIGN_OR_RETURN(tensor.shape, ParseNumbers(name, entry, "shape", kMaxDimensions));
  TUTTI_ASSIGN_OR_RETURN(const auto offsets, ParseNumbers(name, entry, "data_offsets", 2));
  if (offsets.size() != 2 || offsets[0] > offsets[1]) return BadTensor(name, "bad data_offsets");
  tensor.begin = offsets[0];
  tensor.end = offsets[1];
  if (tensor.end > data_bytes) {
    return BadTensor(name, absl::StrCat("its bytes ", tensor.begin, " to ", tensor.end,
                                        " lie outside of the file, which holds ", data_bytes));
  }
  TUTTI_ASSIGN_OR_RETURN(const uint64_t bytes, BytesOf(tensor));
  if (bytes != tensor.end - tensor.begin) {
    return BadTensor(name, absl::StrCat("has ", tensor.end - tensor.begin,
                                        " bytes, but its shape and dtype need ", bytes));
  }
  return tensor;
}

// Sorted by offset, each tensor must begin where the one before it ended.
absl::Status CheckCover(std::vector<TensorRecord>& tensors, uint64_t data_bytes) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorRecord& a, const TensorRecord& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  uint64_t at = 0;
  for (const TensorRecord& tensor : tensors) {
    if (tensor.begin < at) return BadTensor(tensor.name, "overlaps the one before it");
    if (tensor.begin > at) return BadTensor(tensor.name, "leaves a hole before it");
    at = tensor.end;
  }
  if (at != data_bytes) {
    return Bad(absl::StrCat("the file has ", data_bytes - at, " bytes more than its tensors"));
  }
  return absl::OkStatus();
}

}  // namespace

int64_t SizeOf(TensorType type) { return RowOf(type).bytes; }

absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(absl::string_view file) {
  if (file.size() < kLengthBytes) return Bad("the file is cut short: it has no head");
  const uint64_t length = LoadLittleEndian(file);
  if (length > kMaxHeaderBytes) {
    return Bad(absl::StrCat("the head is said to have ", length, " bytes; at most ",
                            kMaxHeaderBytes, " are read"));
  }
  if (length > file.size() - kLengthBytes) return Bad("the file is cut short within its head");
  TUTTI_ASSIGN_OR_RETURN(const json object, ParseObject(file.substr(kLengthBytes, length)));

  SafetensorsHeader header;
  header.data_begin = kLengthBytes + length;
  const uint64_t data_bytes = file.size() - header.data_begin;
  for (const auto& [name, entry] : object.items()) {
    if (name == kMetadata) continue;
    TUTTI_ASSIGN_OR_RETURN(TensorRecord tensor, ParseRecord(name, entry, data_bytes));
    header.tensors.push_back(std::move(tensor));
  }
  TUTTI_RETURN_IF_ERROR(CheckCover(header.tensors, data_bytes));
  return header;
}

absl::StatusOr<std::string> FormatSafetensorsHeader(const std::vector<TensorRecord>& tensors) {
  json object = json::object();
  for (const TensorRecord& tensor : tensors) {
    object[tensor.name] = {{"dtype", std::string(RowOf(tensor.type).name)},
                           {"shape", tensor.shape},
                           {"data_offsets", {tensor.begin, tensor.end}}};
  }
  std::string text;
  try {
    text = object.dump();
  } catch (const json::exception&) {
    return absl::InvalidArgumentError("a tensor's name is not UTF-8");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return StoreLittleEndian(text.size()) + text;
}

}  // namespace tutti::checkpoint
