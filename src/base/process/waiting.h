// Waits for a lock that other processes hold, or for a program that runs; another thread can end
// the wait by setting a flag, which is looked at 20 times a second. Thread-safe.
#pragma once

#include <atomic>
#include <filesystem>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/process/child_process.h"
#include "base/unique_fd.h"

namespace tutti::base {

// How long a process has to end once it has been sent SIGKILL. One that is still there waits for
// the kernel, and no signal ends it.
inline constexpr absl::Duration kUnkillable = absl::Minutes(1);

// Takes an exclusive flock(2) of `file`, which is made if it is not there; held until the
// descriptor is closed. Cancelled once `cancelled` is set.
absl::StatusOr<UniqueFd> LockFile(const std::filesystem::path& file,
                                  const std::atomic<bool>& cancelled);

// Runs a program to its end. Cancelled once `cancelled` is set: its process group is killed.
absl::StatusOr<ExitStatus> RunToEnd(const ChildOptions& options,
                                    const std::atomic<bool>& cancelled);

}  // namespace tutti::base
