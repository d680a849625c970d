// Ends the monitors of containers that podman does not know. A podman that is killed while it makes
// a container leaves its monitor, conmon, and below that a process of the runtime that waits for a
// word to start: `podman rm` finds nothing of them. Thread-safe.
#pragma once

#include <set>
#include <string>

#include "absl/status/status.h"
#include "base/deadline.h"

namespace tutti::launch {

// Kills the monitors of the containers of these names, with all below them, until there is none.
// DeadlineExceeded says how many are left.
absl::Status EndMonitorsOf(const std::set<std::string>& containers, base::Deadline deadline);

}  // namespace tutti::launch
