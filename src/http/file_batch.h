// Packs several small files into the body of one call, and reads them back. Each file is a line
// "NAME_BYTES BYTES\n", its name, which may be any bytes, and its content. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::http {

// A server takes as many bytes as one batch. A large file is sent by a call of its own.
inline constexpr size_t kLargestBatch = 8 << 20;
inline constexpr size_t kMostOfABatch = 2000;  // files

struct BatchFile {
  absl::string_view name, bytes;
};

void AppendToBatch(absl::string_view name, absl::string_view bytes, std::string& body);

// Returns the files of a batch; they refer to `body`. InvalidArgument if that is no batch, or is
// cut off.
absl::StatusOr<std::vector<BatchFile>> FilesOfBatch(absl::string_view body);

}  // namespace tutti::http
