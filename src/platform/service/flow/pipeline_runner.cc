#include "platform/service/flow/pipeline_runner.h"

#include <filesystem>
#include <utility>

#include "base/status.h"
#include "platform/flow/pipeline.h"

namespace tutti::service {
namespace {

const spec::Step* StepNamed(const spec::JobSpec& pipeline, absl::string_view name) {
  for (const spec::Step& step : pipeline.steps) {
    if (step.name == name) return &step;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<bool> PipelineRunner::Advance(LiveJob& pipeline, Effects& effects) {
  flow::PipelineNow now{.canceled = MustStop(pipeline.cause)};
  for (const auto& [step, child] : pipeline.flow->children) now.children[step] = child.child;
  const spec::JobSpec& spec = pipeline.record.job.spec;
  const flow::PipelineDecision decision = flow::NextOfPipeline(spec, now);
  for (const std::string& step : decision.stops) {
    TUTTI_RETURN_IF_ERROR(
        transitions_.StopChild(pipeline, step, "stopped: another step has failed"));
  }
  for (const std::string& step : decision.starts) {
    TUTTI_RETURN_IF_ERROR(steps_.Start(pipeline, *StepNamed(spec, step), effects));
  }
  if (decision.outcome == flow::Outcome::kNone) {
    TUTTI_RETURN_IF_ERROR(transitions_.TellProgress(pipeline, decision.line));
    return false;
  }
  std::vector<FlowTransitions::Result> results;
  if (decision.outcome == flow::Outcome::kCompleted) results = ResultsOf(pipeline);
  return transitions_.End(pipeline, decision.outcome, decision.line, std::move(results), effects);
}

std::vector<FlowTransitions::Result> PipelineRunner::ResultsOf(const LiveJob& pipeline) const {
  std::vector<FlowTransitions::Result> results;
  for (const spec::Step& step : pipeline.record.job.spec.steps) {
    const std::filesystem::path folder =
        state_.files.FolderOf(ChildId(pipeline, step.name)) / "outputs";
    for (const auto& [output, outer] : step.outputs_to) results.push_back({folder / output, outer});
  }
  return results;
}

}  // namespace tutti::service
