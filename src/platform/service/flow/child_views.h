// ChildViews lists the children of a pipeline or a sweep for users.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "platform/service/flow/child_status.h"
#include "platform/service/flow/ended_trials.h"
#include "platform/service/jobs/job_views.h"

namespace tutti::service {

class ChildViews {
 public:
  ChildViews(SharedState& state, const JobTable& table, const JobViews& views)
      : state_(state), table_(table), views_(views) {}

  // Returns what Service::ChildrenOf returns.
  absl::StatusOr<std::vector<ChildStatus>> ChildrenOf(absl::string_view id) const
      ABSL_LOCKS_EXCLUDED(service_lock);

 private:
  absl::StatusOr<std::vector<ChildStatus>> StepsOf(const store::JobRecord& pipeline) const
      ABSL_LOCKS_EXCLUDED(service_lock);
  absl::Status FillStep(const store::JobRecord& record, ChildStatus& child) const
      ABSL_LOCKS_EXCLUDED(service_lock);
  absl::StatusOr<std::vector<ChildStatus>> TrialsOf(const store::JobRecord& sweep) const
      ABSL_LOCKS_EXCLUDED(service_lock);
  // Returns the facts of each trial, in their order. Those of a sweep that has not ended are in
  // memory; of one that has, each trial's are read once.
  absl::StatusOr<std::vector<TrialFacts>> FactsOf(const store::Job& sweep,
                                                  const std::vector<store::JobRecord>& trials) const
      ABSL_LOCKS_EXCLUDED(service_lock);
  // Fills in what is in memory of a sweep that has not ended, and takes those out of `unknown`.
  void AddLive(const store::Job& sweep, const std::vector<store::JobRecord>& trials,
               std::map<int64_t, TrialFacts*>& unknown) const ABSL_LOCKS_EXCLUDED(service_lock);
  // Fills in what each of these has reported best; nothing if their folders do not answer.
  void ReadMetrics(const store::Job& sweep, const std::vector<store::JobRecord>& trials,
                   std::map<int64_t, TrialFacts*> unknown) const ABSL_LOCKS_EXCLUDED(service_lock);

  SharedState& state_;
  const JobTable& table_;
  const JobViews& views_;
  mutable EndedTrials ended_trials_;
};

}  // namespace tutti::service
