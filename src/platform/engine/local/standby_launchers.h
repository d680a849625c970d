// StandbyLaunchers keeps launchers that are started ahead of any job. They are past what takes
// longest, the exec, the linking and the namespaces, and wait for the path of a plan on their
// standard input; so a job's processes begin milliseconds after its node was chosen. One waits on
// each of the first nodes; a thread makes the next one a little after one was taken, so as not to
// compete with it. Those that do not see what was mounted since are made anew. They end when this
// object goes, also by kill -9, since their input ends. Thread-safe.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/process/child_process.h"
#include "base/unique_fd.h"
#include "platform/engine/local/launcher_process.h"
#include "platform/engine/local/new_mounts.h"

namespace tutti::engine {

// One that was taken and has a plan, or will have; without one it ends with this object.
class Standby {
 public:
  Standby(base::ChildProcess child, base::UniqueFd input)
      : process(std::move(child)), own(ProcessOf(process)), input_(std::move(input)) {}
  Standby(Standby&&) = default;
  Standby& operator=(Standby&&) = default;
  ~Standby();

  // Returns whether it lives and takes that plan, whose folder is there; if so the process is the
  // caller's.
  bool SendPlan(const std::filesystem::path& plan);
  // Returns before it has ended.
  void EndInput() { ::shutdown(input_.get(), SHUT_WR); }

  base::ChildProcess process;
  LauncherProcess own;  // of `process`

 private:
  base::UniqueFd input_;  // until the plan is sent
};

class StandbyLaunchers {
 public:
  // Starts one on that node, with this descriptor as its standard input.
  using Starter = std::function<absl::StatusOr<base::ChildProcess>(int node, int stdin_fd)>;

  StandbyLaunchers(int nodes, Starter start);
  ~StandbyLaunchers();

  // Returns the node's, if one waits there; the next is made a little later.
  std::optional<Standby> Take(int node);

 private:
  void Run();
  // Returns the node whose next launcher is due; -1 if none is, `wait` says for how long.
  int Due(absl::Duration& wait) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Make(int node);

  // Gives up those that wait, where a job would miss what was mounted since they were made.
  void EndStandbysWithOldMounts() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Starter start_;
  absl::Mutex mutex_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  NewMounts new_mounts_ ABSL_GUARDED_BY(mutex_);
  int64_t given_up_ ABSL_GUARDED_BY(mutex_) = 0;  // how often all were
  std::map<int, Standby> waiting_ ABSL_GUARDED_BY(mutex_);
  std::vector<Standby> old_ ABSL_GUARDED_BY(mutex_);  // that are to end
  // Node -> when to make the next, of base::SteadyNow.
  std::map<int, absl::Duration> missing_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace tutti::engine
