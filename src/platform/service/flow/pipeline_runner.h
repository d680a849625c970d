// PipelineRunner carries out what platform/flow decides of a pipeline.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "platform/service/flow/flow_transitions.h"
#include "platform/service/flow/step_starter.h"

namespace tutti::service {

class PipelineRunner {
 public:
  PipelineRunner(SharedState& state, FlowTransitions& transitions, StepStarter& steps)
      : state_(state), transitions_(transitions), steps_(steps) {}

  // Does what follows from the state of the pipeline's steps. True if the pipeline has ended.
  absl::StatusOr<bool> Advance(LiveJob& pipeline, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

 private:
  // Returns the outputs of its steps that are outputs of its own.
  std::vector<FlowTransitions::Result> ResultsOf(const LiveJob& pipeline) const;

  SharedState& state_;
  FlowTransitions& transitions_;
  StepStarter& steps_;
};

}  // namespace tutti::service
