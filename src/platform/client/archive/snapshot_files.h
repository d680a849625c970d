// Reads a code archive back, to look at what jobs have run.
#pragma once

#include <cstdint>
#include <filesystem>

#include "absl/status/status.h"

namespace tutti::client {

// Writes the files of an archive below `folder`, which is empty. No link is made, so none leads out
// of it. InvalidArgument for what is no code archive; ResourceExhausted for files of more than
// `most_bytes` together.
absl::Status UnpackFiles(const std::filesystem::path& archive, const std::filesystem::path& folder,
                         uint64_t most_bytes);

}  // namespace tutti::client
