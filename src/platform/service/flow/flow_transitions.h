// FlowTransitions writes the events of a pipeline or a sweep itself: its progress, the stops of its
// children, its end.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "platform/flow/child.h"
#include "platform/service/allocation/effects.h"
#include "platform/service/jobs/job_table.h"

namespace tutti::service {

class FlowTransitions {
 public:
  // Something of a child that becomes the parent's output `name`; all its outputs, if "".
  struct Result {
    std::filesystem::path from;
    std::string name;
  };

  FlowTransitions(SharedState& state, JobTable& table) : state_(state), table_(table) {}

  absl::Status TellProgress(LiveJob& parent, const std::string& line)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  absl::Status StopChild(LiveJob& parent, const std::string& step, const std::string& reason)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Collects the results first, by a task. True once the parent has ended.
  absl::StatusOr<bool> End(LiveJob& parent, flow::Outcome outcome, const std::string& line,
                           std::vector<Result> results, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

 private:
  // Links, as a task, results into the folder of the job.
  void Collect(const std::string& id, const std::vector<Result>& results, bool is_step)
      ABSL_LOCKS_EXCLUDED(service_lock);

  SharedState& state_;
  JobTable& table_;
};

}  // namespace tutti::service
