// Ending what a job started: every process below the launcher, whatever its group, session or
// parent. The launcher is a subreaper, so orphans come to it and not to init.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/deadline.h"

namespace tutti::launch {

// Makes this process the subreaper of what it starts.
absl::Status BecomeSubreaper();

// The value of a variable in the environment a process was started with, or "".
std::string EnvironmentVariableOf(pid_t pid, absl::string_view name);

// For a second launcher: kills the processes whose environment says TUTTI_ALLOCATION_ID =
// `allocation_id`, but not this one, until none is left. DeadlineExceeded says how many are.
absl::Status EndProcessesOf(absl::string_view allocation_id, base::Deadline deadline);

}  // namespace tutti::launch
