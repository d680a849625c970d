// Holds the processes and threads of an allocation on this node to a number, by a cgroup of their
// own, so that a job that forks without end fails in its own forks and the machine goes on. Where
// this user may not make cgroups there is no limit but the watch in NodeProcesses. Not thread-safe.
#pragma once

#include <filesystem>
#include <string>

#include "base/unique_fd.h"
#include "spec/launch_plan.h"

namespace tutti::launch {

// Removes what a launcher that was killed has left of it.
void RemoveProcessLimits(const spec::LaunchPlan& plan);

// What a node's share of the machine's process numbers is worth: a quarter of them.
int MostProcesses();

class ProcessLimit {
 public:
  // `most` processes and threads together.
  ProcessLimit(const spec::LaunchPlan& plan, int most);
  // Removes the cgroup, which is empty once all of the allocation's processes have ended.
  ~ProcessLimit();
  ProcessLimit(const ProcessLimit&) = delete;
  ProcessLimit& operator=(const ProcessLimit&) = delete;

  bool holds() const { return members_.valid(); }
  // For ChildOptions::before_exec: the calling process and all that it starts are limited. Returns
  // 0.
  int Enter() const;

 private:
  std::filesystem::path folder_;
  base::UniqueFd members_;  // its cgroup.procs
};

}  // namespace tutti::launch
