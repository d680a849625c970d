// Decides what a pipeline does next: which steps start, which are stopped, and how it ends. A pure
// function of its file and of the steps that were started; no clock, no effect, no state.
//
// A step starts once every step that it needs has completed. When one fails, the others are stopped
// and nothing more starts; with continue_on_step_failure all goes on that does not need it. The
// step of settings.on_finalize starts when nothing else runs or will run, also after a failure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "platform/flow/child.h"
#include "spec/types/job.h"

namespace tutti::flow {

struct PipelineNow {
  std::map<std::string, Child> children;  // by step, of those that were started
  bool canceled = false;                  // nothing more starts, all are stopped
};

struct PipelineDecision {
  std::vector<std::string> starts;  // in the order of the file
  std::vector<std::string> stops;   // active ones
  std::vector<std::string> never;   // steps that will not start any more
  Outcome outcome = Outcome::kNone;
  std::string line;  // how it ended, or how far it is
};

PipelineDecision NextOfPipeline(const spec::JobSpec& pipeline, const PipelineNow& now);

}  // namespace tutti::flow
