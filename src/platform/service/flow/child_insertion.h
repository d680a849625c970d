// ChildInsertion makes the job of a pipeline's step or a sweep's trial: it writes the job's first
// events to the store.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "platform/service/flow/flow_children.h"
#include "platform/service/jobs/job_table.h"

namespace tutti::service {

class ChildInsertion {
 public:
  ChildInsertion(SharedState& state, JobTable& table, FlowChildren& children)
      : state_(state), table_(table), children_(children) {}

  // A child that is in the store already, since a crash cut this short, is taken as it is.
  // `reused_from` not empty: with its end, since its results are there.
  absl::Status Insert(LiveJob& parent, const std::string& step, store::Job job,
                      const std::string& reused_from) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

 private:
  // Takes a child that is in the store.
  absl::Status AdoptKnown(LiveJob& parent, const std::string& id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Adds what a job of that step has beside what it runs.
  void Complete(const LiveJob& parent, const std::string& step, store::Job& job) const;

  SharedState& state_;
  JobTable& table_;
  FlowChildren& children_;
};

}  // namespace tutti::service
