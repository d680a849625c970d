// SweepRunner carries out what platform/flow decides of a sweep. Which values a trial gets takes
// the longer the more trials there were, where the sampling learns from them: a task finds out,
// without the lock.
#pragma once

#include <string>
#include <vector>

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
  // Returns how many more trials may wait in the queue: as many as could start at once.
  int RoomInQueue(const LiveJob& sweep) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Has a task propose the values of the next `count` trials, by a copy of what is known.
  void AskForProposals(LiveJob& sweep, int count, Effects& effects) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  void NoteProposals(const std::string& sweep, int first, std::vector<flow::Values> values) const
      ABSL_LOCKS_EXCLUDED(service_lock);

  SharedState& state_;
  const JobTable& table_;
  FlowTransitions& transitions_;
  ChildInsertion& insertion_;
};

}  // namespace tutti::service
