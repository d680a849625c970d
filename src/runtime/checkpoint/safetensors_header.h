// Parses and writes the head of a safetensors file (github.com/huggingface/safetensors, "Format"):
// 8 bytes of length, little endian, a JSON object of that length, and then the tensors' bytes. No
// libtorch here, so that the reader of untrusted bytes can be tested and fuzzed alone.
//
// Invariant of what is parsed: every tensor's bytes are as many as its shape and type say, lie
// within the file, and the tensors cover the data exactly: no overlap, no hole.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::checkpoint {

enum class TensorType {
  kBool,
  kUint8,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64
};

int64_t SizeOf(TensorType type);

struct TensorRecord {
  std::string name;
  TensorType type = TensorType::kFloat32;
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;  // in bytes from the start of the data
};

struct SafetensorsHeader {
  std::vector<TensorRecord> tensors;  // by offset
  uint64_t data_begin = 0;            // where the data starts in the file
};

// A longer head is refused before anything is allocated for it; it has room for 100,000 tensors.
inline constexpr uint64_t kMaxHeaderBytes = uint64_t{16} << 20;

// Parses a header; `file` is the whole file. DataLoss says what is wrong and names the tensor.
absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(absl::string_view file);

// Returns the head with its length, padded with spaces so that the data starts at a multiple of 8.
// The records' offsets are the caller's. InvalidArgument: a name that is not UTF-8.
absl::StatusOr<std::string> FormatSafetensorsHeader(const std::vector<TensorRecord>& tensors);

}  // namespace tutti::checkpoint
