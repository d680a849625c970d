// SweepRunner carries out what platform/flow decides of a sweep.
#pragma once

#include "absl/status/statusor.h"
#include "platform/service/flow/child_insertion.h"
#include "platform/service/flow/flow_transitions.h"

namespace tutti::service {

class SweepRunner {
 public:
  SweepRunner(SharedState& state, const JobTable& table, FlowTransitions& transitions,
              ChildInsertion& insertion)
      : state_(state), table_(table), transitions_(transitions), insertion_(insertion) {}

  // Does what follows from the state of the sweep's trials. True if the sweep has ended.
  absl::StatusOr<bool> Advance(LiveJob& sweep, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

 private:
  // Returns whether as many trials wait in the queue as could start at once.
  bool QueuesEnough(const LiveJob& sweep) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

  SharedState& state_;
  const JobTable& table_;
  FlowTransitions& transitions_;
  ChildInsertion& insertion_;
};

}  // namespace tutti::service
