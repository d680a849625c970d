// ChildViews lists the children of a pipeline or a sweep for users. What is shown of trials is in
// narrow rows of the store; of those that have not ended, what they have reported by now is in
// memory. Of a sweep as much is read as is shown, however many trials it has.
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

  // Return what the functions of Service of these names return.
  absl::StatusOr<Children> ChildrenOf(absl::string_view id) const ABSL_LOCKS_EXCLUDED(service_lock);
  absl::StatusOr<TrialPage> TrialsOf(absl::string_view id, const TrialQuery& query) const
      ABSL_LOCKS_EXCLUDED(service_lock);

 private:
  absl::StatusOr<Children> StepsOf(const store::JobRecord& pipeline) const
      ABSL_LOCKS_EXCLUDED(service_lock);
  absl::Status FillStep(const store::JobRecord& record, ChildStatus& child) const
      ABSL_LOCKS_EXCLUDED(service_lock);
  absl::StatusOr<Children> FirstTrialsOf(const store::JobRecord& sweep) const
      ABSL_LOCKS_EXCLUDED(service_lock);
  absl::StatusOr<TrialPage> PageOf(const store::JobRecord& sweep, const TrialQuery& query) const
      ABSL_LOCKS_EXCLUDED(service_lock);
  // Adds what only memory knows of trials that have not ended.
  void AddLive(const store::JobRecord& sweep, std::vector<ChildStatus>& trials) const
      ABSL_LOCKS_EXCLUDED(service_lock);

  SharedState& state_;
  const JobTable& table_;
  const JobViews& views_;
};

}  // namespace tutti::service
