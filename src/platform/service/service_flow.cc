// Pipelines and sweeps: what platform/flow decides is done here. A child is in the store before
// anything else of it happens, under an id that says whose it is, so that whatever a crash cuts
// short is decided again and happens once.
#include <spdlog/spdlog.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "platform/flow/pipeline.h"
#include "platform/flow/step_key.h"
#include "platform/flow/sweep.h"
#include "platform/service/folder_content.h"
#include "platform/service/service_core.h"
#include "platform/service/trial_metrics.h"
#include "spec/binding.h"
#include "spec/data_map.h"

namespace tutti::service {
namespace {

using flow::ChildState;
using store::JobState;

constexpr size_t kTokenBytesOfChild = 32;

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

uint64_t SeedOf(const store::Job& job) {
  if (job.spec.sweep->seed) return static_cast<uint64_t>(*job.spec.sweep->seed);
  const base::Sha256Digest digest = base::Sha256Of(job.id);
  uint64_t seed = 0;
  for (int i = 0; i < 8; ++i) seed = seed << 8 | digest[i];
  return seed;
}

flow::Values ValuesOf(const spec::Sweep& sweep, const spec::JobSpec& trial) {
  flow::Values values;
  for (const spec::SearchParameter& parameter : sweep.parameters) {
    const auto input = trial.inputs.find(parameter.name);
    values.push_back(input == trial.inputs.end() ? "" : input->second.literal);
  }
  return values;
}

// Trial `number` as a command job.
spec::JobSpec TrialSpec(const spec::JobSpec& sweep, int number, const flow::Values& values) {
  spec::JobSpec trial = sweep;
  trial.kind = spec::JobKind::kCommand;
  trial.sweep.reset();
  trial.timeout = sweep.sweep->trial_timeout;
  trial.display_name = flow::TrialName(number);
  for (size_t i = 0; i < values.size(); ++i) {
    trial.inputs[sweep.sweep->parameters[i].name].literal = values[i];
  }
  // What mlflow.log_metric writes comes with the trial's results. Newer versions of MLflow write
  // files only if they are told that they may.
  trial.environment_variables.emplace("MLFLOW_TRACKING_URI", "outputs/mlruns");
  trial.environment_variables.emplace("MLFLOW_ALLOW_FILE_STORE", "true");
  return trial;
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
      Complain(absl::StrCat("job ", id, " cannot go on"), ended.status());
      if (!ended.ok() || !*ended) continue;
      flows_.erase(found->second.get());
      live_.erase(found);
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
                            {child.reports.other_names.begin(), child.reports.other_names.end()}});
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

// What can be found out of a step at leisure comes first: whether an earlier one did the same.
absl::Status ServiceCore::BeginStep(LiveJob& parent, const spec::Step& step, Effects& effects) {
  const std::string id = ChildId(parent, step.name);
  const auto [plan, is_new] = parent.flow->plans.try_emplace(step.name);
  const store::Job& job = parent.record.job;
  spec::JobSpec bound = spec::Bind(job.spec, step, [&](const std::string& sibling) {
    return files_.FolderOf(ChildId(parent, sibling)).native();
  });
  if (is_new) {
    effects.chores.push_back([this, parent_id = job.id, step = step.name, bound = std::move(bound),
                              snapshot = step.snapshot, id] {
      const StepPlan made = PlanStep(bound, snapshot, id);
      absl::MutexLock lock(&mutex_);
      const auto found = live_.find(parent_id);
      if (found == live_.end()) return;
      found->second->flow->plans[step] = made;
      Wake();
    });
    return absl::OkStatus();
  }
  if (!plan->second.ready) return absl::OkStatus();
  const StepPlan made = plan->second;
  parent.flow->plans.erase(plan);
  return InsertChild(parent, step.name,
                     {.spec = std::move(bound), .snapshot = step.snapshot, .step_key = made.key},
                     made.reused_from);
}

StepPlan ServiceCore::PlanStep(const spec::JobSpec& job, const std::string& snapshot,
                               const std::string& id) {
  StepPlan plan{.ready = true};
  std::map<std::string, std::string> digests;
  bool known = job.reusable && job.kind != spec::JobKind::kPipeline;
  for (const auto& [name, input] : job.inputs) {
    if (input.path.empty()) continue;
    std::error_code error;
    const bool ours = absl::StartsWith(input.path, files_.FolderOf("").native());
    if (ours && !std::filesystem::exists(input.path, error) && input.type != "uri_file") {
      // A step that wrote nothing into an output has left no folder.
      base::MakeDirectories(input.path).IgnoreError();
    }
    if (!known) continue;
    auto digest = spec::IsAddress(input.path) ? absl::StatusOr<std::string>("at " + input.path)
                                              : DigestOf(input.path);
    known = digest.ok();
    if (known) digests[name] = *std::move(digest);
  }
  if (!known) return plan;
  plan.key = flow::StepKey(job, snapshot, digests);
  const auto earlier = store_->CompletedWithKey(plan.key);
  if (!earlier.ok()) return plan;
  const std::filesystem::path from = files_.FolderOf(earlier->job.id), to = files_.FolderOf(id);
  const absl::Status linked =
      std::filesystem::exists(from) ? LinkContent(from, to) : base::MakeDirectories(to);
  if (linked.ok()) {
    plan.reused_from = earlier->job.id;
  } else {
    spdlog::warn("job {}: the results of {} are not reused: {}", id, earlier->job.id,
                 linked.ToString());
    base::RemoveTree(to).IgnoreError();
  }
  return plan;
}

absl::Status ServiceCore::InsertChild(LiveJob& parent, const std::string& step, store::Job job,
                                      const std::string& reused_from) {
  job.id = ChildId(parent, step);
  if (const auto known = store_->GetJob(job.id); known.ok()) {
    AdoptChild(parent, *known);
    return absl::OkStatus();
  }
  job.created = clock_->Now();
  job.job_token = options_.random_hex(kTokenBytesOfChild);
  job.parent = parent.record.job.id;
  job.step = step;
  if (job.spec.kind == spec::JobKind::kCommand) {
    const std::string root = job.parent.substr(0, job.parent.find('.'));
    job.spec.environment_variables.emplace("AZUREML_ROOT_RUN_ID", root);
  }
  std::vector<store::Event> events = {
      {.time = job.created, .state = JobState::kQueued, .reason = "submitted"}};
  if (reused_from.empty()) {
    // What a life before this one has linked and not used would mix with its own results.
    TUTTI_RETURN_IF_ERROR(base::RemoveTree(files_.FolderOf(job.id)));
  } else {
    const std::string detail = ToJson(Detail{.reused_from = reused_from});
    const std::string reason = absl::StrCat("reused: nothing has changed since ", reused_from);
    for (const JobState state : {JobState::kFinalizing, JobState::kCompleted}) {
      events.push_back({.time = job.created, .state = state, .reason = reason, .detail = detail});
    }
  }
  TUTTI_ASSIGN_OR_RETURN(const store::JobRecord record, store_->InsertJob(job, events));
  spdlog::info("job {}: {}: {}", job.id, std::string(Name(record.last.state)), record.last.reason);
  AdoptChild(parent, record);
  if (IsEnd(record.last.state)) {
    Wake();
    return absl::OkStatus();
  }
  auto live = std::make_unique<LiveJob>();
  live->record = record;
  TUTTI_RETURN_IF_ERROR(RebuildFlow(*live));
  if (live->flow != nullptr) flows_.insert(live.get());
  live_[job.id] = std::move(live);
  Wake();
  return absl::OkStatus();
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
      effects.chores.push_back([this, id = parent.record.job.id, results = std::move(results)] {
        Collect(id, results);
      });
    }
    flow.results = LiveFlow::Results::kUnderWay;
    return false;
  }
  TUTTI_RETURN_IF_ERROR(Append(parent, {state, line, parent.cause}));
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

absl::StatusOr<std::vector<ChildStatus>> ServiceCore::ChildrenOf(absl::string_view id) {
  TUTTI_ASSIGN_OR_RETURN(const JobStatus parent, GetJob(id));
  const spec::JobSpec& spec = parent.record.job.spec;
  if (spec.kind == spec::JobKind::kCommand) return std::vector<ChildStatus>();
  TUTTI_ASSIGN_OR_RETURN(const std::vector<store::JobRecord> records, store_->ChildrenOf(id));
  std::map<std::string, const store::JobRecord*> by_step;
  for (const store::JobRecord& record : records) by_step[record.job.step] = &record;
  std::vector<ChildStatus> children;
  for (const spec::Step& step : spec.steps) {
    const auto found = by_step.find(step.name);
    ChildStatus child{.step = step.name, .kind = step.job.kind};
    if (found != by_step.end()) {
      TUTTI_RETURN_IF_ERROR(FillChild(*found->second, child));
    } else {
      child.never = IsEnd(parent.record.last.state);
    }
    children.push_back(std::move(child));
  }
  if (spec.sweep) {
    TUTTI_RETURN_IF_ERROR(FillTrials(*spec.sweep, records, children));
  }
  return children;
}

absl::Status ServiceCore::FillChild(const store::JobRecord& record, ChildStatus& child) {
  {
    absl::MutexLock lock(&mutex_);
    const auto live = live_.find(record.job.id);
    child.job = StatusOf(live == live_.end() ? record : live->second->record);
  }
  child.reused_from = DetailFromJson(record.last.detail).reused_from;
  if (record.job.spec.kind == spec::JobKind::kCommand) return absl::OkStatus();
  TUTTI_ASSIGN_OR_RETURN(child.children, ChildrenOf(record.job.id));
  return absl::OkStatus();
}

absl::Status ServiceCore::FillTrials(const spec::Sweep& sweep,
                                     const std::vector<store::JobRecord>& records,
                                     std::vector<ChildStatus>& children) {
  size_t best = records.size();
  for (const store::JobRecord& record : records) {
    ChildStatus child{.step = record.job.step};
    TUTTI_RETURN_IF_ERROR(FillChild(record, child));
    const flow::Values values = ValuesOf(sweep, record.job.spec);
    for (size_t i = 0; i < values.size(); ++i) {
      child.values.emplace_back(sweep.parameters[i].name, values[i]);
    }
    const auto reports = ReportsOf(files_.FolderOf(record.job.id), sweep.metric);
    if (!reports.values.empty()) child.metric = flow::BestOf(sweep, reports.values);
    children.push_back(std::move(child));
    const ChildStatus& now = children.back();
    if (!now.metric || now.job->record.last.state != JobState::kCompleted) continue;
    const size_t index = children.size() - 1;
    const bool better =
        best == records.size() || (sweep.maximize ? *now.metric > *children[best].metric
                                                  : *now.metric < *children[best].metric);
    if (better) best = index;
  }
  if (best < records.size()) children[best].best = true;
  return absl::OkStatus();
}

}  // namespace tutti::service
