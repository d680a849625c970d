// Copies files and folders; a copy can be cancelled between two files. Thread-safe.
#pragma once

#include <atomic>
#include <filesystem>

#include "absl/status/status.h"

namespace tutti::launch {

// Copies a file or a folder with all it holds; links are followed. The owner may write to the copy.
// Cancelled once `cancelled` is set; InvalidArgument for a link to a folder above it, of which
// there would be copies without end.
absl::Status Copy(const std::filesystem::path& from, const std::filesystem::path& to,
                  const std::atomic<bool>& cancelled);

// Copies a folder in which somebody may still write. Links as they are, also those that lead
// nowhere; what is neither a file nor a folder is left out, and so is what vanishes meanwhile.
absl::Status CopyAsItIs(const std::filesystem::path& from, const std::filesystem::path& to,
                        const std::atomic<bool>& cancelled);

}  // namespace tutti::launch
