#include "platform/service/flow/flow_runner.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
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

FlowRunner::FlowRunner(SharedState& state, JobTable& table)
    : state_(state),
      table_(table),
      children_(state, table),
      insertion_(state, table, children_),
      steps_(state, table, insertion_),
      transitions_(state, table),
      sweeps_(state, table, transitions_, insertion_) {
  table.AddListener(&children_);
}

void FlowRunner::AdvanceAll(Effects& effects) {
  // A child that ends may end its parent, whose parent comes later in no particular order.
  for (bool any = true; any;) {
    any = false;
    std::vector<std::string> parents;
    for (const LiveJob* job : table_.flows()) parents.push_back(job->record.job.id);
    for (const std::string& id : parents) {
      LiveJob* const parent = table_.Find(id);
      if (parent == nullptr) continue;
      const auto ended = Advance(*parent, effects);
      state_.problems.Note(absl::StrCat("job ", id, " cannot go on"), ended.status(), {.job = id});
      if (!ended.ok() || !*ended) continue;
      table_.flows().erase(parent);
      table_.Remove(*parent);
      any = true;
    }
  }
}

absl::StatusOr<bool> FlowRunner::Advance(LiveJob& parent, Effects& effects) {
  const store::Job& job = parent.record.job;
  const bool overdue = parent.record.started && !MustStop(parent.cause) &&
                       RunTimeOf(state_, parent) > job.spec.timeout;
  if (overdue) {
    TUTTI_RETURN_IF_ERROR(table_.Append(
        parent, {store::JobState::kFinalizing, "its time limit has passed; ending its children",
                 Cause::kTimedOut}));
  }
  TUTTI_RETURN_IF_ERROR(children_.Refresh(parent, effects));
  if (!parent.flow->changed) return false;
  parent.flow->changed = false;
  const auto ended = job.spec.kind == spec::JobKind::kSweep ? sweeps_.Advance(parent, effects)
                                                            : AdvancePipeline(parent, effects);
  if (!ended.ok()) parent.flow->changed = true;  // and is tried again
  return ended;
}

absl::StatusOr<bool> FlowRunner::AdvancePipeline(LiveJob& pipeline, Effects& effects) {
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

std::vector<FlowTransitions::Result> FlowRunner::ResultsOf(const LiveJob& pipeline) const {
  std::vector<FlowTransitions::Result> results;
  for (const spec::Step& step : pipeline.record.job.spec.steps) {
    const std::filesystem::path folder =
        state_.files.FolderOf(ChildId(pipeline, step.name)) / "outputs";
    for (const auto& [output, outer] : step.outputs_to) results.push_back({folder / output, outer});
  }
  return results;
}

}  // namespace tutti::service
