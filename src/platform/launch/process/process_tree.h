// Ends what a job started: every process below the launcher, whatever its group, session or parent.
// The launcher is a subreaper, so orphans come to it and not to init.
#pragma once

#include <sys/types.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/deadline.h"
#include "base/process/waiting.h"

namespace tutti::launch {

// Makes this process the subreaper of what it starts.
absl::Status BecomeSubreaper();

// Brings every descendant of this process but for its own children (own_children.h) to an end:
// SIGTERM once to each, also to those that come meanwhile, but for those that keep a container;
// after the grace SIGKILL until none is left.
class EndingDescendants {
 public:
  explicit EndingDescendants(absl::Duration grace)
      : kill_at_(base::Deadline::After(grace)),
        give_up_at_(base::Deadline::After(grace + base::kUnkillable)) {}
  // Sends the signals that are due now. True when no descendant is left. Call again soon. Those of
  // `spared` are not signalled yet; after the grace they are killed with the others.
  bool Continue(const std::set<pid_t>& spared = {});
  // Returns whether what is left will not end: base::kUnkillable after the grace it is still there.
  bool IsOverdue() const { return give_up_at_.Expired(); }

 private:
  base::Deadline kill_at_, give_up_at_;
  std::set<pid_t> signalled_;
};

// Returns the value of a variable in the environment a process was started with, or "".
std::string EnvironmentVariableOf(pid_t pid, absl::string_view name);

// The first process of a rank, as this launcher knows it.
struct RankLeader {
  int rank;
  pid_t pid;
};

// Returns the leaders with all below them, and those of `all` that belong to none by parentage and
// have a rank's environment.
std::map<int, std::vector<pid_t>> ProcessesByRank(const std::vector<RankLeader>& leaders,
                                                  const std::vector<pid_t>& all);

// Called by a second launcher: kills the processes whose environment says TUTTI_ALLOCATION_ID =
// `allocation_id`, but not this one, until none is left. Those that say TUTTI_NODE_NAME are left to
// their own launcher if it is another than `node`, as a machine may have several virtual nodes; "":
// none is. DeadlineExceeded says how many are left.
absl::Status EndProcessesOf(absl::string_view allocation_id, absl::string_view node,
                            base::Deadline deadline);

}  // namespace tutti::launch
