// Observer takes in what the engines report of allocations: which launchers live, which were lost.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "platform/engine/engine.h"
#include "platform/service/allocation/cluster_queue.h"
#include "platform/service/allocation/leaving_allocations.h"

namespace tutti::service {

class Observer {
 public:
  Observer(SharedState& state, JobTable& table, LeavingAllocations& leaving,
           ClusterQueue& cluster_queue)
      : state_(state), table_(table), leaving_(leaving), cluster_queue_(cluster_queue) {}

  // Takes in all allocations that the engine of that compute has.
  void Observe(const std::string& compute, const std::vector<engine::AllocationState>& states,
               Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

 private:
  // Notes what the engine says; `state` is null if the engine knows nothing of the allocation.
  void ObservePlaced(PlacedJob& job, const engine::AllocationState* state)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Notes what keeps the allocation from its end, or that it is gone.
  void NoteLeft(const std::string& compute, const engine::AllocationState& state)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Notes that the node's launcher died before it had finished.
  void NoteDeadLauncher(PlacedJob& job, int node) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

  SharedState& state_;
  JobTable& table_;
  LeavingAllocations& leaving_;
  ClusterQueue& cluster_queue_;
  std::set<std::string> left_ ABSL_GUARDED_BY(service_lock);  // allocations with such a problem
};

}  // namespace tutti::service
