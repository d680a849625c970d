// LocalScheduler starts waiting jobs on this machine's nodes: it asks platform/scheduler which jobs
// begin where, and writes the decision.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "platform/scheduler/scheduler.h"
#include "platform/service/allocation/job_progress.h"

namespace tutti::service {

class LocalScheduler {
 public:
  LocalScheduler(SharedState& state, JobTable& table, const LeavingAllocations& leaving,
                 JobProgress& progress, const NodeHealth& health)
      : state_(state), table_(table), leaving_(leaving), progress_(progress), health_(health) {}

  // Starts what can start now. Where nothing can, it takes no longer for a longer queue.
  void Schedule(Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Called before jobs are shown: finds what the waiting jobs wait for. The time does not grow with
  // a long queue, and most of it is spent without the lock; nothing is done if nothing has changed
  // since the last call.
  void Explain() ABSL_LOCKS_EXCLUDED(service_lock);
  // Notes that a job has come.
  void WakeForNewJob(const LiveJob& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Returns where a job that is being inserted can start at once, as the last of its priority: the
  // nodes are held for it until Release. The allocation has no id yet.
  std::optional<Placement> PlaceAtOnce(const store::Job& job)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  void Release(const std::string& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock) {
    held_.erase(id);
  }
  static std::string ReasonOfStart(const Placement& placement);

 private:
  // Says what the scheduler is asked, as values, so that it may answer without the lock.
  struct Question {
    std::vector<scheduler::PendingJob> pending;
    std::vector<scheduler::RunningJob> running;
    std::vector<scheduler::ClusterNode> nodes;
    absl::Time now;
    int cordoned = 0;
    scheduler::Decision Answer() const;
  };
  Question QuestionOf(std::vector<scheduler::PendingJob> pending, absl::Time now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Returns nothing if no job's reason may have changed, or all wait for the same.
  std::optional<Question> WhatIsToBeExplained() ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Calls visit(PlacedNode) for each node that is in use, once for each that has a part of it.
  template <class Visit>
  void VisitHeld(const Visit& visit) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Returns whether a processor is free on a node that jobs may start on.
  bool HasRoom() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Returns the jobs that hold nodes, with those that are over and whose nodes are not free yet or
  // are being checked after a failure.
  std::vector<scheduler::RunningJob> Running(absl::Time now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Returns how many nodes there are beside those.
  int Cordoned(const std::vector<scheduler::ClusterNode>& nodes) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Returns the nodes that jobs may start on.
  std::vector<scheduler::ClusterNode> OpenNodes() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Returns a port that is free now, and that no job which is placed has.
  FreePort FindPort(const std::string& address, int preferred) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Returns the placement of a job whose ranks meet on ports that stay claimed.
  Placement PlaceWithPorts(const spec::JobSpec& spec, const std::vector<engine::Node>& nodes) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Returns the placement of a job on those nodes, without an id of the allocation.
  absl::StatusOr<Placement> PlacementOn(const spec::JobSpec& spec,
                                        const scheduler::Start& start) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  absl::Status StartOn(LiveJob& job, const scheduler::Start& start, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

  SharedState& state_;
  JobTable& table_;
  const LeavingAllocations& leaving_;
  JobProgress& progress_;
  const NodeHealth& health_;
  // Nodes of jobs that are being inserted with their placement.
  std::map<std::string, std::vector<PlacedNode>> held_ ABSL_GUARDED_BY(service_lock);
  bool is_explained_ ABSL_GUARDED_BY(service_lock) = false;  // since the last change
  // Since boot.
  absl::Duration last_explanation_ ABSL_GUARDED_BY(service_lock) = -absl::InfiniteDuration();
};

}  // namespace tutti::service
