// Holds the processes and threads of an allocation on this node to a number, by a cgroup of their
// own, so that a job that forks without end fails in its own forks and the machine goes on. Where
// this user may not make cgroups there is no limit but the watch in NodeProcesses. Not thread-safe.
#pragma once

#include <filesystem>
#include <string>

#include "base/unique_fd.h"
#include "spec/json/launch_plan.h"

namespace tutti::launch {

// Removes what a launcher that was killed has left of it.
void RemoveProcessLimits(const spec::LaunchPlan& plan);

// Returns what a node's share of the machine's process numbers is worth: a quarter of them. Read
// once.
int MostProcesses();

// Entering a cgroup waits for all processors, some ten milliseconds. A launcher that has no plan
// yet can do it beforehand, where a cgroup can be renamed (v1): the ProcessLimit that it makes
// later takes that one, in which all that it starts then is, and it too.
void ReserveProcessLimit();
// Leaves and removes what was reserved, once all that was started has ended.
void ReturnProcessLimit();

class ProcessLimit {
 public:
  // Allows `most` processes and threads together.
  ProcessLimit(const spec::LaunchPlan& plan, int most);
  // Removes the cgroup, which is empty once all of the allocation's processes have ended.
  ~ProcessLimit();
  ProcessLimit(const ProcessLimit&) = delete;
  ProcessLimit& operator=(const ProcessLimit&) = delete;

  bool holds() const { return reserved_ || members_.valid(); }
  // Limits the calling process and all that it starts. Call it in ChildOptions::before_exec.
  // Returns 0.
  int Enter() const;

 private:
  std::filesystem::path folder_;
  bool reserved_ = false;   // this process is in it
  base::UniqueFd members_;  // else its cgroup.procs
};

}  // namespace tutti::launch
