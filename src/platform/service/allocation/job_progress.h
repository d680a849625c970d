// JobProgress takes each step that a job with nodes can take: NextStep decides it, and JobProgress
// writes it.
#pragma once

#include "absl/status/statusor.h"
#include "platform/service/allocation/effects.h"
#include "platform/service/allocation/job_output.h"
#include "platform/service/allocation/leaving_allocations.h"
#include "platform/service/allocation/node_health.h"
#include "platform/service/jobs/job_table.h"

namespace tutti::service {

class JobProgress {
 public:
  JobProgress(SharedState& state, JobTable& table, LeavingAllocations& leaving, JobOutput& output,
              NodeHealth& health)
      : state_(state), table_(table), leaving_(leaving), output_(output), health_(health) {}

  void AdvanceAll(Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Takes every step that is possible. True if the job has left its nodes: it has ended, or is
  // Queued again.
  absl::StatusOr<bool> Advance(LiveJob& job, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

 private:
  // Advances one job; true if it has left its nodes, as far as that could be written.
  bool AdvanceOne(LiveJob& job, Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  SharedState& state_;
  JobTable& table_;
  LeavingAllocations& leaving_;
  JobOutput& output_;
  NodeHealth& health_;
};

}  // namespace tutti::service
