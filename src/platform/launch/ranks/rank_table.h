// RankTable holds the ranks of one node that have begun, whoever started them, and reports their
// begin ("started") and end ("exited") as events. Not thread-safe.
#pragma once

#include <sys/types.h>

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "base/process/child_process.h"
#include "platform/launch/delivery/delivery.h"
#include "platform/launch/diagnosis/last_error.h"
#include "platform/launch/node/event_log.h"
#include "platform/launch/node/memory_watch.h"
#include "platform/launch/node/output_pipe.h"
#include "platform/launch/process/process_tree.h"
#include "platform/launch/ranks/rank_process.h"
#include "spec/json/launch_plan.h"

namespace tutti::launch {

class RankTable {
 public:
  // All outlive the object. `delivery` is woken when a rank has ended.
  RankTable(const spec::LaunchPlan& plan, EventLog* events, Delivery* delivery)
      : plan_(plan), events_(events), delivery_(delivery) {}

  // Adds one that has begun.
  void Add(std::unique_ptr<RankProcess> rank);
  // Checks a rank: OK if `rank` is one of this node's that has not begun; Internal otherwise.
  absl::Status CheckMayBegin(int rank) const;

  const std::vector<std::unique_ptr<RankProcess>>& ranks() const { return ranks_; }
  // Finds a rank; null if no such rank has begun.
  RankProcess* Find(int rank) const;
  RankProcess* FindByPid(pid_t pid) const;
  bool HasAll() const;
  bool AnyRuns() const;
  // Returns whether one has ended by itself with an error.
  bool AnyFailed() const;
  std::vector<RankLeader> Running() const;
  std::vector<OutputPipe*> Pipes() const;

  // Notes that from here on the kernel's out-of-memory kills may be of these ranks.
  void CountKernelKills() { kernel_kills_before_ = KernelOutOfMemoryKills(); }
  // Reaps a rank that is a child of this process and has ended. `stopped`: it had been told to end.
  base::ExitStatus Reap(RankProcess& rank, bool stopped);
  // Reports that a rank that somebody else reaps has ended.
  void End(RankProcess& rank, base::ExitStatus status, bool stopped);
  // Does the same for all that still run and whose end nobody will see.
  void GiveUp();
  // Reports what MPI says of the failure of a rank, on whatever node; does nothing if `failure`
  // names no rank or no error.
  void ReportMpiFailure(const MpiFailure& failure);

  // Returns whether one was reported that ended with another exit code than 0.
  bool failed() const { return failed_; }

 private:
  void Report(nlohmann::json exit);
  KernelKills KilledByKernel() const;

  const spec::LaunchPlan& plan_;
  EventLog* const events_;
  Delivery* const delivery_;
  std::vector<std::unique_ptr<RankProcess>> ranks_;
  std::optional<int64_t> kernel_kills_before_;
  bool failed_ = false;
};

// Appends it as an event of this launcher's.
void AppendMpiFailure(EventLog& events, const MpiFailure& failure);

}  // namespace tutti::launch
