// What users see of the children of a pipeline or a sweep.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "platform/service/flow/child_status.h"
#include "platform/service/jobs/job_views.h"

namespace tutti::service {

class ChildViews {
 public:
  ChildViews(SharedState& state, const JobTable& table, const JobViews& views)
      : state_(state), table_(table), views_(views) {}

  // As Service has it.
  absl::StatusOr<std::vector<ChildStatus>> ChildrenOf(absl::string_view id) const
      ABSL_LOCKS_EXCLUDED(service_lock);

 private:
  absl::Status FillChild(const store::JobRecord& record, ChildStatus& child) const
      ABSL_LOCKS_EXCLUDED(service_lock);
  // What each trial has reported best; nothing if their folders do not answer.
  std::vector<std::optional<double>> MetricsOf(const store::Job& sweep,
                                               const std::vector<store::JobRecord>& records) const
      ABSL_LOCKS_EXCLUDED(service_lock);
  absl::Status FillTrials(const store::Job& job, const std::vector<store::JobRecord>& records,
                          std::vector<ChildStatus>& children) const
      ABSL_LOCKS_EXCLUDED(service_lock);

  SharedState& state_;
  const JobTable& table_;
  const JobViews& views_;
};

}  // namespace tutti::service
