// ClusterQueue hands jobs to engines that have a queue of their own (Slurm), and follows them there
// until they get nodes. Such a job is Queued as long as it waits there; the service hands it over
// as often as it starts anew, which an engine does not mind, and writes Provisioning once it is
// told the nodes.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "platform/engine/engine.h"
#include "platform/service/allocation/data_holders.h"
#include "platform/service/allocation/engine_calls.h"
#include "platform/service/jobs/job_table.h"

namespace tutti::service {

class ClusterQueue {
 public:
  ClusterQueue(SharedState& state, JobTable& table, EngineCalls& calls, const DataHolders& data)
      : state_(state), table_(table), calls_(calls), data_(data) {}

  // Has the engines start all jobs that their clusters do not have yet; where the disk of all nodes
  // was full, one of them every so often.
  void HandOver(Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Takes what a cluster says of a job that it has yet to place, or has just placed.
  void Observe(LiveJob& job, const engine::AllocationState& state)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Returns whether the allocation is one that a cluster has just begun and that is not placed yet;
  // has the cluster looked at, if so.
  bool IsBeingPlaced(absl::string_view allocation) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

 private:
  void HandOver(const std::string& compute, LiveJob& live, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  absl::Status PlaceOn(LiveJob& job, const engine::AllocationState& state)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Ends a job that the cluster ended before it had a node.
  void EndUnplaced(LiveJob& job, const engine::AllocationState& state)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

  SharedState& state_;
  JobTable& table_;
  EngineCalls& calls_;
  const DataHolders& data_;
};

}  // namespace tutti::service
