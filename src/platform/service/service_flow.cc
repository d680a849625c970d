// Pipelines and sweeps: what platform/flow decides is done here. A child is in the store before
// anything else of it happens, under an id that says whose it is, so that whatever a crash cuts
// short is decided again and happens once.
#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/flow/pipeline.h"
#include "platform/flow/sweep.h"
#include "platform/service/flow/trial.h"
#include "platform/service/flow/trial_metrics.h"
#include "platform/service/results/folder_content.h"
#include "platform/service/service_core.h"

namespace tutti::service {
namespace {

using flow::ChildState;
using store::JobState;

ChildState StateOfChild(JobState state) {
  switch (state) {
    case JobState::kCompleted:
      return ChildState::kCompleted;
    case JobState::kFailed:
      return ChildState::kFailed;
    case JobState::kCanceled:
      return ChildState::kCanceled;
    default:
      return ChildState::kActive;
  }
}

const spec::Step* StepNamed(const spec::JobSpec& pipeline, absl::string_view name) {
  for (const spec::Step& step : pipeline.steps) {
    if (step.name == name) return &step;
  }
  return nullptr;
}

store::JobState StateOf(flow::Outcome outcome) {
  return outcome == flow::Outcome::kCompleted ? JobState::kCompleted
         : outcome == flow::Outcome::kFailed  ? JobState::kFailed
                                              : JobState::kCanceled;
}

}  // namespace

absl::Status ServiceCore::RebuildFlow(LiveJob& job) {
  if (job.record.job.spec.kind == spec::JobKind::kCommand) return absl::OkStatus();
  job.flow = std::make_unique<LiveFlow>();
  TUTTI_ASSIGN_OR_RETURN(const std::vector<store::JobRecord> records,
                         store_->ChildrenOf(job.record.job.id));
  for (const store::JobRecord& record : records) AdoptChild(job, record);
  return absl::OkStatus();
}

void ServiceCore::AdoptChild(LiveJob& parent, const store::JobRecord& record) {
  LiveChild& child = parent.flow->children[record.job.step];
  child.id = record.job.id;
  if (parent.record.job.spec.sweep) {
    child.values = ValuesOf(*parent.record.job.spec.sweep, record.job.spec);
  }
  Refresh(parent, child, record.last);
}

void ServiceCore::Refresh(const LiveJob& parent, LiveChild& child, const store::Event& last) {
  const bool was_active = child.child.state == ChildState::kActive;
  child.child.state = StateOfChild(last.state);
  child.child.reason = last.reason;
  child.child.queued = last.state == JobState::kQueued;
  if (IsEnd(last.state)) {
    child.child.ended = last.time;
    child.child.reused = !DetailFromJson(last.detail).reused_from.empty();
  }
  const auto& sweep = parent.record.job.spec.sweep;
  if (!sweep || !was_active) return;
  const std::filesystem::path folder = files_.FolderOf(child.id);
  const uintmax_t bytes = MetricsBytes(folder);
  if (bytes == child.metrics_bytes && !IsEnd(last.state)) return;
  child.metrics_bytes = bytes;
  child.reports = ReportsOf(folder, sweep->metric);
}

absl::Status ServiceCore::RefreshChildren(LiveJob& parent) {
  for (auto& [step, child] : parent.flow->children) {
    if (child.child.state != ChildState::kActive) continue;
    if (const auto live = live_.find(child.id); live != live_.end()) {
      Refresh(parent, child, live->second->record.last);
      continue;
    }
    const auto record = store_->GetJob(child.id);
    TUTTI_RETURN_IF_ERROR(record.status());
    Refresh(parent, child, record->last);
  }
  return absl::OkStatus();
}

void ServiceCore::AdvanceFlows(Effects& effects) {
  // A child that ends may end its parent, whose parent comes later in no particular order.
  for (bool any = true; any;) {
    any = false;
    std::vector<std::string> parents;
    for (const LiveJob* job : flows_) parents.push_back(job->record.job.id);
    for (const std::string& id : parents) {
      const auto found = live_.find(id);
      if (found == live_.end()) continue;
      const auto ended = AdvanceFlow(*found->second, effects);
      Complain(absl::StrCat("job ", id, " cannot go on"), ended.status(), {.job = id});
      if (!ended.ok() || !*ended) continue;
      flows_.erase(found->second.get());
      EndLive(*found->second);
      any = true;
    }
  }
}

absl::StatusOr<bool> ServiceCore::AdvanceFlow(LiveJob& parent, Effects& effects) {
  const store::Job& job = parent.record.job;
  const bool overdue = parent.record.started && !MustStop(parent.cause) &&
                       clock_->Now() > *parent.record.started + job.spec.timeout;
  if (overdue) {
    TUTTI_RETURN_IF_ERROR(
        Append(parent, {JobState::kFinalizing, "its time limit has passed; ending its children",
                        Cause::kTimedOut}));
  }
  TUTTI_RETURN_IF_ERROR(RefreshChildren(parent));
  return job.spec.kind == spec::JobKind::kSweep ? AdvanceSweep(parent, effects)
                                                : AdvancePipeline(parent, effects);
}

absl::StatusOr<bool> ServiceCore::AdvancePipeline(LiveJob& parent, Effects& effects) {
  flow::PipelineNow now{.canceled = MustStop(parent.cause)};
  for (const auto& [step, child] : parent.flow->children) now.children[step] = child.child;
  const spec::JobSpec& spec = parent.record.job.spec;
  const flow::PipelineDecision decision = flow::NextOfPipeline(spec, now);
  for (const std::string& step : decision.stops) {
    TUTTI_RETURN_IF_ERROR(StopChild(parent, step, "stopped: another step has failed"));
  }
  for (const std::string& step : decision.starts) {
    TUTTI_RETURN_IF_ERROR(BeginStep(parent, *StepNamed(spec, step), effects));
  }
  if (decision.outcome == flow::Outcome::kNone) {
    TUTTI_RETURN_IF_ERROR(TellProgress(parent, decision.line));
    return false;
  }
  std::vector<Result> results;
  if (decision.outcome == flow::Outcome::kCompleted) {
    for (const spec::Step& step : spec.steps) {
      const std::filesystem::path folder = files_.FolderOf(ChildId(parent, step.name)) / "outputs";
      for (const auto& [output, outer] : step.outputs_to) {
        results.push_back({folder / output, outer});
      }
    }
  }
  return EndFlow(parent, StateOf(decision.outcome), decision.line, std::move(results), effects);
}

absl::StatusOr<bool> ServiceCore::AdvanceSweep(LiveJob& parent, Effects& effects) {
  const store::Job& job = parent.record.job;
  while (true) {
    flow::SweepNow now{.canceled = parent.cause == Cause::kCanceled,
                       .timed_out = parent.cause == Cause::kTimedOut};
    for (int number = 1;; ++number) {
      const auto found = parent.flow->children.find(flow::TrialName(number));
      if (found == parent.flow->children.end()) break;
      const LiveChild& child = found->second;
      now.trials.push_back({child.child,
                            child.values,
                            child.reports.values,
                            {child.reports.other_names.begin(), child.reports.other_names.end()},
                            child.reports.odd_line});
    }
    const flow::SweepDecision decision = flow::NextOfSweep(job.spec, SeedOf(job), now);
    for (const flow::TrialStop& stop : decision.stops) {
      TUTTI_RETURN_IF_ERROR(StopChild(parent, flow::TrialName(stop.number), stop.reason));
    }
    if (decision.starts && !QueuesEnough(parent)) {
      const int number = static_cast<int>(now.trials.size()) + 1;
      TUTTI_RETURN_IF_ERROR(InsertChild(
          parent, flow::TrialName(number),
          {.spec = TrialSpec(job.spec, number, decision.values), .snapshot = job.snapshot}, {}));
      continue;
    }
    if (decision.outcome == flow::Outcome::kNone) {
      TUTTI_RETURN_IF_ERROR(TellProgress(parent, decision.line));
      return false;
    }
    std::vector<Result> results;
    if (decision.best > 0) {
      const std::string best = ChildId(parent, flow::TrialName(decision.best));
      results.push_back({files_.FolderOf(best) / "outputs", ""});
    }
    return EndFlow(parent, StateOf(decision.outcome), decision.line, std::move(results), effects);
  }
}

std::string ServiceCore::ChildId(const LiveJob& parent, absl::string_view step) {
  return absl::StrCat(parent.record.job.id, ".", step);
}

// What is proposed later knows more, and a queue of thousands of trials helps nobody.
bool ServiceCore::QueuesEnough(const LiveJob& sweep) const {
  size_t queued = 0;
  for (const auto& [step, child] : sweep.flow->children) {
    if (child.child.state != ChildState::kActive) continue;
    const auto live = live_.find(child.id);
    if (live != live_.end() && live->second->placed == nullptr) ++queued;
  }
  return queued > nodes_.size();
}

absl::Status ServiceCore::TellProgress(LiveJob& parent, const std::string& line) {
  if (MustStop(parent.cause)) return absl::OkStatus();
  const store::Event& last = parent.record.last;
  if (last.state == JobState::kRunning && last.reason == line) return absl::OkStatus();
  return Append(parent, {JobState::kRunning, line, parent.cause});
}

absl::Status ServiceCore::StopChild(LiveJob& parent, const std::string& step,
                                    const std::string& reason) {
  const auto live = live_.find(parent.flow->children.at(step).id);
  if (live == live_.end()) return absl::OkStatus();
  return CancelLive(*live->second, reason).status();
}

absl::StatusOr<bool> ServiceCore::EndFlow(LiveJob& parent, JobState state, const std::string& line,
                                          std::vector<Result> results, Effects& effects) {
  LiveFlow& flow = *parent.flow;
  if (parent.record.last.state != JobState::kFinalizing) {
    TUTTI_RETURN_IF_ERROR(
        Append(parent, {JobState::kFinalizing, "all of its jobs have ended; collecting results",
                        parent.cause == Cause::kNone ? Cause::kEnded : parent.cause}));
  }
  if (!results.empty() && flow.results != LiveFlow::Results::kThere) {
    if (flow.results == LiveFlow::Results::kNone) {
      effects.tasks.push_back([this, id = parent.record.job.id, results = std::move(results)] {
        Collect(id, results);
      });
    }
    flow.results = LiveFlow::Results::kUnderWay;
    return false;
  }
  TUTTI_RETURN_IF_ERROR(Append(parent, {state, line, parent.cause}));
  StampOnceReusable(parent, effects);
  return true;
}

void ServiceCore::Collect(const std::string& id, const std::vector<Result>& results) {
  const std::filesystem::path outputs = files_.FolderOf(id) / "outputs";
  for (const Result& result : results) {
    std::error_code error;
    if (!std::filesystem::exists(result.from, error)) continue;  // nothing was written
    const std::filesystem::path to = result.name.empty() ? outputs : outputs / result.name;
    const absl::Status status = LinkContent(result.from, to);
    if (!status.ok()) spdlog::error("job {}: {}", id, status.ToString());
  }
  absl::MutexLock lock(&mutex_);
  const auto found = live_.find(id);
  if (found == live_.end()) return;
  found->second->flow->results = LiveFlow::Results::kThere;
  Wake();
}

}  // namespace tutti::service
