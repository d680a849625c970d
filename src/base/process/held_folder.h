// Reserves a folder for one process by a lock in it. Thread-safe.
#pragma once

#include <filesystem>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace tutti::base {

// Holds the folder by an flock(2) of the file "lock" in it until the descriptor is closed, which
// the kernel does however the process ends. FailedPrecondition if another service holds it: names
// its process and machine. If that service was killed, the folder is free once what it had just
// forked has called exec; this is waited for a few seconds.
absl::StatusOr<UniqueFd> HoldFolder(const std::filesystem::path& folder);

}  // namespace tutti::base
