// FlowRunner runs pipelines and sweeps: it carries out what platform/flow decides. A child is in
// the store before anything else of it happens, under an id that says whose it is, so that whatever
// a crash cuts short is decided again and happens once.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "platform/service/flow/child_insertion.h"
#include "platform/service/flow/flow_children.h"
#include "platform/service/flow/flow_transitions.h"
#include "platform/service/flow/step_starter.h"
#include "platform/service/flow/sweep_runner.h"

namespace tutti::service {

class FlowRunner {
 public:
  FlowRunner(SharedState& state, JobTable& table);
  FlowRunner(const FlowRunner&) = delete;
  FlowRunner& operator=(const FlowRunner&) = delete;

  // Rebuilds the children of a job of an earlier service.
  absl::Status Rebuild(LiveJob& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock) {
    return children_.Rebuild(job);
  }
  void AdvanceAll(Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

 private:
  // Advances a parent; true if it has ended.
  absl::StatusOr<bool> Advance(LiveJob& parent, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Does what follows from the state of the pipeline's steps; true if the pipeline has ended.
  absl::StatusOr<bool> AdvancePipeline(LiveJob& pipeline, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Returns the outputs of its steps that are outputs of its own.
  std::vector<FlowTransitions::Result> ResultsOf(const LiveJob& pipeline) const;

  SharedState& state_;
  JobTable& table_;
  FlowChildren children_;
  ChildInsertion insertion_;
  StepStarter steps_;
  FlowTransitions transitions_;
  SweepRunner sweeps_;
};

}  // namespace tutti::service
