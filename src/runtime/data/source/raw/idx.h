// Parses IDX files, the format of MNIST: a big-endian header with the type and the sizes of an
// array, then its bytes. Arrays of unsigned bytes are read, of up to three dimensions.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::data {

struct IdxArray {
  std::vector<uint32_t> sizes;
  absl::string_view bytes;  // as many as the sizes say, in the file's memory
};

// Parses a file. InvalidArgument: no IDX, not of bytes, more dimensions; DataLoss: other bytes than
// the sizes say.
absl::StatusOr<IdxArray> ParseIdx(absl::string_view file);

}  // namespace tutti::data
