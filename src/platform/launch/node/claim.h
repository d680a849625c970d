// Decides which launcher may run an allocation's processes: the first that takes the folder's lock
// and finds no marker, in the start of the machine that the plan names, if it names one. Every
// later one only clears up.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "platform/launch/node/node_folders.h"

namespace tutti::launch {

// Takes the lock and writes {"pid", "start_time"} into it. FailedPrecondition if a live launcher
// holds it.
absl::StatusOr<base::UniqueFd> TakeLock(const NodeFolders& folders);
// Returns whether `lock` is that folder's, be it that the folder had another name when it was
// taken.
bool IsLockOf(const NodeFolders& folders, const base::UniqueFd& lock);

struct Claim {
  base::UniqueFd lock;  // held as long as it is open
  bool first = false;
};

// Makes the marker, which nobody else can after that. `lock`: of this folder, else it is taken now;
// errors of TakeLock. `boot_id`: of the plan.
absl::StatusOr<Claim> ClaimAllocation(const NodeFolders& folders, const std::string& boot_id,
                                      base::UniqueFd lock);

// Syncs the marker and the plan, where the plan names no start of the machine: then a power failure
// may not take the marker. What a claim's holder does before this is not to be seen: it comes
// before the first process.
absl::Status MakeClaimDurable(const NodeFolders& folders);

}  // namespace tutti::launch
