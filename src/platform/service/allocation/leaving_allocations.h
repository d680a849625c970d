// LeavingAllocations holds the allocations that are over but still occupy their nodes, until their
// launchers have ended and the engine has released them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "platform/engine/engine.h"
#include "platform/service/allocation/effects.h"
#include "platform/service/jobs/job_table.h"

namespace tutti::service {

class LeavingAllocations {
 public:
  struct Leaving {
    std::string compute;
    std::vector<PlacedNode> nodes;  // that tutti's scheduler, or that of a former service, gave it
    absl::Duration since;           // boot, as the next
    absl::Duration last_stop = -absl::InfiniteDuration();
  };
  using Map = std::map<std::string, Leaving>;

  LeavingAllocations(SharedState& state, const JobTable& table) : state_(state), table_(table) {}

  // Adds the placement of a job that has left its nodes.
  void Add(const LiveJob& job, const Placement& placement)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Notes that the engine has released the allocation.
  void Remove(const std::string& allocation) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock) {
    leaving_.erase(allocation);
  }
  // Takes what an engine sees of an allocation that is no live job's.
  void Observe(const std::string& compute, const engine::AllocationState& state, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Forgets the allocations of the compute that its engine does not see.
  template <typename Seen>
  void ForgetUnseen(const std::string& compute, const Seen& seen)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock) {
    std::erase_if(leaving_, [&](const auto& entry) {
      return entry.second.compute == compute && !seen.contains(entry.first);
    });
  }
  const Map& all() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock) { return leaving_; }

 private:
  // Has the launchers end, by force if they had their time.
  void End(const engine::AllocationState& state, Leaving& leaving, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

  SharedState& state_;
  const JobTable& table_;
  Map leaving_ ABSL_GUARDED_BY(service_lock);
};

}  // namespace tutti::service
