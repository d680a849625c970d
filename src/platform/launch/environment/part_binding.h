// The launcher of a job that has a share of its node keeps to it, with all that it starts: to the
// share's processors, which its ranks share out, and to its GPUs.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "platform/launch/environment/process_environment.h"
#include "spec/json/launch_plan.h"

namespace tutti::launch {

// Binds this process with all of its threads, and corrects what is known of the node. Nothing for
// a job that has the node whole. Internal if the processors are not there.
absl::Status KeepToPart(const spec::LaunchPlan& plan, NodeFacts& facts);

// Returns the processors of the share that are this rank's: each rank has as many as the others,
// give or take one; if they are fewer than the ranks, all have all. Empty without a share.
std::vector<int> CoresOfRank(const spec::LaunchPlan& plan, int local_rank);

// The processors of a rank, which may be none: then it keeps those that it has.
class RankCores {
 public:
  RankCores(const spec::LaunchPlan& plan, int local_rank);
  // Lets the calling process, or that one, run on them alone from now on; 0 or an errno. Safe
  // between fork and exec.
  int Enter(pid_t pid = 0) const;

 private:
  cpu_set_t cores_;
  bool has_any_;
};

// Returns the processors on which this process may run, if those are not all of the machine's: a
// container is in a group of its own, which does not know of others' (Slurm's).
std::vector<int> CoresIfNotAll();

// Returns "0-3,7", as the kernel and podman write them.
std::string CoreList(const std::vector<int>& cores);

}  // namespace tutti::launch
