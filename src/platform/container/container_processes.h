// Ends the processes of this machine that make and keep containers, by the containers' names. A
// podman that is killed while it makes a container leaves its monitor, conmon, and below that a
// process of the runtime that waits for a word to start: `podman rm` finds nothing of them.
// Thread-safe.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "base/deadline.h"

namespace tutti::container {

// Kills each `podman run` of these containers and what runs in them, in one pass that waits for
// nothing: so containers that need each other end together, however long their removal takes. Their
// monitors stay, which tell podman of the end.
void KillWithin(const std::set<std::string>& containers);

// Kills each `podman run` of these containers, so that it makes none that a removal before it did
// not find. DeadlineExceeded says how many are left.
absl::Status EndPodmansOf(const std::set<std::string>& containers, base::Deadline deadline);

// Kills the monitors of the containers of these names, with all below them, until there is none.
// DeadlineExceeded says how many are left.
absl::Status EndMonitorsOf(const std::set<std::string>& containers, base::Deadline deadline);

// Kills each process of runc's that waits, in that folder or below it, to become a container's
// first one: it waits for ever where podman and the monitor were both killed before it began, and
// podman does not know of it. DeadlineExceeded says how many are left.
absl::Status EndWaitingIn(const std::filesystem::path& folder, base::Deadline deadline);

}  // namespace tutti::container
