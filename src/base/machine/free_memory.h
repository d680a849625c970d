// Tells how much memory a process may still take. Thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>

#include "absl/status/statusor.h"

namespace tutti::base {

// Returns the bytes that processes here may take before the kernel kills one: what it calls
// available, or what the process's control groups (version 2) leave of their limits, if that is
// less. Files in the page cache count as free. `root`: of the file system that is asked, for tests.
absl::StatusOr<int64_t> FreeMemory(const std::filesystem::path& root = "/");

}  // namespace tutti::base
