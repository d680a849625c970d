// The processes of one node from start to the end of the last descendant: their output goes to the
// spool, their exits to the event log, and limits of time, memory and spool are held. One thread,
// one poll loop; the processes die with that thread (PR_SET_PDEATHSIG).
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/child_process.h"
#include "platform/launch/delivery.h"
#include "platform/launch/environment.h"
#include "platform/launch/launcher_options.h"
#include "platform/launch/memory_watch.h"
#include "platform/launch/output_pipe.h"
#include "platform/launch/signals.h"

namespace tutti::launch {

class NodeProcesses {
 public:
  // All outlive the object. `news` wakes the loop when the service acknowledged something or is
  // gone.
  NodeProcesses(const spec::LaunchPlan& plan, const LauncherOptions& options, EventLog* events,
                Spool* spool, Delivery* delivery, Signals* signals, Wakeup* news);
  ~NodeProcesses();

  // Starts `command` once per rank and returns when no process is left. OK unless something other
  // than the processes themselves went wrong: a process could not be started, the time limit, a
  // full spool.
  absl::Status Run(const std::string& command, const NodeFacts& facts);

 private:
  struct Rank;
  struct Stopping {
    base::Deadline kill_at;
    std::set<pid_t> told = {};  // have had their SIGTERM
  };

  absl::Status StartAll(const std::string& command, const NodeFacts& facts);
  absl::Status StartOne(Rank& rank, const std::string& command, const NodeFacts& facts);
  bool AnyRuns() const;
  void PollOnce();
  absl::Duration UntilNextTask() const;
  void PumpOutput();
  void ReapChildren();
  void Ended(Rank& rank, base::ExitStatus status);
  std::pair<bool, std::string> OutOfMemory(const Rank& rank, base::ExitStatus status) const;
  void HoldLimits();
  void WatchSpool(bool full);
  void BeginStop(absl::Duration grace, absl::Status reason);
  // Sends each descendant the signal that is due, SIGTERM once only. True when none is left.
  bool EndDescendants();
  void DrainOutput();

  const spec::LaunchPlan& plan_;
  const LauncherOptions& options_;
  EventLog* const events_;
  Spool* const spool_;
  Delivery* const delivery_;
  Signals* const signals_;
  Wakeup* const news_;

  std::vector<std::unique_ptr<Rank>> ranks_;
  MemoryWatch memory_;
  base::Deadline next_memory_look_;
  base::Deadline time_limit_;
  int64_t kernel_kills_before_;
  std::optional<Stopping> stopping_;
  bool stopped_ = false;  // asked to end before all ranks had ended by themselves
  bool output_waits_ = false;
  std::optional<base::Deadline> spool_patience_;
  uint64_t acknowledged_at_wait_ = 0;
  absl::Status reason_;  // the first thing that went wrong outside of the processes
};

}  // namespace tutti::launch
