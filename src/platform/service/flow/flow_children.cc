#include "platform/service/flow/flow_children.h"

#include <iterator>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/service/attempt/next_step.h"
#include "platform/service/flow/trial.h"
#include "platform/service/flow/trial_metrics.h"
#include "platform/service/runs/job_runs.h"

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

// True if the child has ended by that event, its last one.
bool TakeIn(const store::Event& last, LiveChild& child, LiveFlow& flow) {
  const bool has_ended = IsEnd(last.state);
  if (child.last_event == last.sequence) return has_ended;
  child.last_event = last.sequence;
  child.child = {.state = StateOfChild(last.state),
                 .reason = std::string(WithoutNotes(last.reason)),
                 .queued = last.state == JobState::kQueued};
  if (has_ended) {
    child.child.ended = last.time;
    child.child.reused = !EventDetailFromJson(last.detail).reused_from.empty();
  }
  flow.changed = true;
  return has_ended;
}

}  // namespace

std::string ChildId(const LiveJob& parent, absl::string_view step) {
  return absl::StrCat(parent.record.job.id, ".", step);
}

absl::Status FlowChildren::Rebuild(LiveJob& job) {
  if (job.flow == nullptr) return absl::OkStatus();
  const std::string& id = job.record.job.id;
  if (job.flow->trials == nullptr) {
    TUTTI_ASSIGN_OR_RETURN(const auto records, state_.store->ChildrenOf(id));
    for (const store::JobRecord& record : records) Adopt(job, record, {});
    return absl::OkStatus();
  }
  TUTTI_ASSIGN_OR_RETURN(
      std::vector<store::TrialRecord> trials,
      state_.store->TrialsOf({.sweep = id, .limit = std::numeric_limits<int>::max()}));
  for (store::TrialRecord& trial : trials) {
    Adopt(job, trial.job, std::move(trial.values));
    job.flow->children[trial.job.job.step].noted = trial.known;
  }
  return absl::OkStatus();
}

void FlowChildren::Adopt(LiveJob& parent, const store::JobRecord& record, flow::Values values) {
  LiveFlow& flow = *parent.flow;
  if (flow.trials != nullptr) {  // which come in the order of their numbers
    if (flow::TrialNumber(record.job.step) != flow.trials->size() + 1) return;
    flow.trials->Start(std::move(values));
  }
  LiveChild& child = flow.children[record.job.step];
  child.id = record.job.id;
  if (IsEnd(record.last.state)) child.end = record.last;
  flow.active.insert(record.job.step);
  flow.changed = true;
}

void FlowChildren::OnEvent(const store::Job& job, const store::Event& event, const EventDetail&) {
  if (job.parent.empty() || !IsEnd(event.state)) return;
  const LiveJob* const parent = table_.Find(job.parent);
  if (parent == nullptr || parent->flow == nullptr) return;
  const auto child = parent->flow->children.find(job.step);
  if (child != parent->flow->children.end()) child->second.end = event;
}

absl::Status FlowChildren::Refresh(LiveJob& parent, Effects& effects) {
  LiveFlow& flow = *parent.flow;
  for (auto step = flow.active.begin(); step != flow.active.end();) {
    LiveChild& child = flow.children.at(*step);
    TUTTI_ASSIGN_OR_RETURN(const store::Event* const last, LastOf(child));
    const bool has_ended = flow.trials != nullptr
                               ? LookAtTrial(parent, *step, child, *last, effects)
                               : TakeIn(*last, child, flow);
    step = has_ended ? flow.active.erase(step) : std::next(step);
  }
  return absl::OkStatus();
}

absl::StatusOr<const store::Event*> FlowChildren::LastOf(const LiveChild& child) const {
  if (const LiveJob* const live = table_.Find(child.id)) return &live->record.last;
  if (child.end) return &*child.end;
  return absl::InternalError(
      absl::StrCat("job ", child.id, " is not live, and no end of it is known"));
}

bool FlowChildren::LookAtTrial(const LiveJob& sweep, const std::string& step, LiveChild& trial,
                               const store::Event& last, Effects& effects) {
  if (!IsEnd(last.state)) {
    TakeIn(last, trial, *sweep.flow);
    if (!trial.child.queued) ReadMetrics(sweep, step, trial, /*has_ended=*/false, effects);
    return false;
  }
  if (trial.reading) return false;  // and then once more, to the end
  trial.end = last;
  ReadMetrics(sweep, step, trial, /*has_ended=*/true, effects);
  return true;
}

void FlowChildren::ReadMetrics(const LiveJob& sweep, const std::string& step, LiveChild& trial,
                               bool has_ended, Effects& effects) {
  if (trial.reading) return;
  const store::Job& job = sweep.record.job;
  if (trial.metrics == nullptr) {
    trial.metrics =
        std::make_shared<TrialMetrics>(state_.files.FolderOf(trial.id), job.spec.sweep->metric,
                                       [this, id = trial.id, metric = job.spec.sweep->metric] {
                                         return TrackedReports(state_, id, metric);
                                       });
  }
  trial.reading = true;
  effects.tasks.push_back({trial.id, [this, id = job.id, step, metrics = trial.metrics, has_ended] {
                             const auto any = metrics->ReadOn(has_ended);
                             NoteMetrics(id, step, metrics, any, has_ended);
                           }});
}

void FlowChildren::NoteMetrics(const std::string& sweep, const std::string& step,
                               const std::shared_ptr<TrialMetrics>& metrics,
                               const absl::StatusOr<bool>& read, bool has_ended) {
  const bool to_the_end = has_ended && read.ok();
  const bool any = !read.ok() || *read;
  flow::MetricReports reports;
  bool anew = false;
  if (any || to_the_end) reports = metrics->NewReports(anew);
  StateLock lock(state_);
  const LiveJob* const parent = table_.Find(sweep);
  if (parent == nullptr || parent->flow == nullptr) return;
  const auto found = parent->flow->children.find(step);
  if (found == parent->flow->children.end() || found->second.metrics != metrics) return;
  LiveChild& trial = found->second;
  trial.reading = false;
  state_.problems.Note(absl::StrCat("what job ", trial.id, " has reported cannot be read"),
                       read.status(), {.job = sweep});
  LiveFlow& flow = *parent->flow;
  if (has_ended && !read.ok()) flow.active.insert(step);  // and is read again
  if (!any && !to_the_end) return;
  flow.trials->Report(flow::TrialNumber(step), reports, anew);
  if (to_the_end) {
    const absl::Status kept = EndTrial(*parent, step, trial);
    state_.problems.Note(absl::StrCat("what job ", trial.id, " has reported cannot be kept"), kept,
                         {.job = sweep});
    if (!kept.ok()) flow.active.insert(step);  // and this is tried again
  }
  flow.changed = true;
  state_.Wake();
}

absl::Status FlowChildren::EndTrial(const LiveJob& sweep, const std::string& step,
                                    LiveChild& trial) {
  LiveFlow& flow = *sweep.flow;
  const int number = flow::TrialNumber(step);
  const std::optional<double> cost =
      CostOf(*sweep.record.job.spec.sweep, flow.trials->metric(number));
  if (!trial.noted) {
    // What a loss of power takes of it, it takes of the sweep's end too.
    TUTTI_RETURN_IF_ERROR(state_.store->NoteTrials({{trial.id, cost}}, store::Durability::kCrash));
    trial.noted = true;
  }
  TakeIn(*trial.end, trial, flow);
  flow.trials->End(number, trial.child.state, trial.child.reason);
  trial.metrics.reset();
  return absl::OkStatus();
}

}  // namespace tutti::service
