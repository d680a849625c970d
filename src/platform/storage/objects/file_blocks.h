// Reads a file of this machine block by block, as it goes to a store.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tutti::storage {

// Takes the next block; its error ends the work of who gives them.
using TakeBlock = std::function<absl::Status(absl::string_view block)>;

// Calls `take` with each block, of `most` bytes or less; an error that it returns is the result.
// Errors of the file have the source kDisk (storage_fault.h). Thread-safe.
absl::Status ReadBlocks(const std::filesystem::path& file, size_t most, const TakeBlock& take);

}  // namespace tutti::storage
