// StepStarter starts the steps of a pipeline. What can be found out of a step at leisure comes
// first, by a task: whether an earlier one did the same, so that its results can be taken. The
// tasks of a pipeline, and those of one file server, are at most four at a time
// (allocation/plan_queue.h): a pipeline whose inputs take hours to read, and a server that is away,
// leave the other threads to other pipelines.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "platform/service/allocation/effects.h"
#include "platform/service/flow/child_insertion.h"
#include "platform/service/jobs/job_table.h"
#include "platform/service/jobs/live_flow.h"
#include "platform/service/results/file_digests.h"

namespace tutti::service {

class StepStarter {
 public:
  StepStarter(SharedState& state, const JobTable& table, ChildInsertion& insertion)
      : state_(state), table_(table), insertion_(insertion) {}

  // Starts the step; call it again until the step is there.
  absl::Status Start(LiveJob& parent, const spec::Step& step, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

 private:
  // Run as tasks. `id` is that of the step's job to be.
  void MakePlan(const std::string& parent, const std::string& step, const spec::JobSpec& bound,
                const std::string& snapshot, const std::string& id)
      ABSL_LOCKS_EXCLUDED(service_lock);
  StepPlan PlanOf(const spec::JobSpec& job, const std::string& snapshot, const std::string& id);
  void Reuse(const std::string& earlier, const std::string& id, StepPlan& plan);

  SharedState& state_;
  const JobTable& table_;
  ChildInsertion& insertion_;
  FileDigests digests_{&state_.ending};
};

}  // namespace tutti::service
