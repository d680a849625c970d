#include "platform/service/flow/flow_children.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/service/flow/trial.h"
#include "platform/service/flow/trial_metrics.h"

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

}  // namespace

std::string ChildId(const LiveJob& parent, absl::string_view step) {
  return absl::StrCat(parent.record.job.id, ".", step);
}

absl::Status FlowChildren::Rebuild(LiveJob& job) {
  if (job.flow == nullptr) return absl::OkStatus();
  TUTTI_ASSIGN_OR_RETURN(const std::vector<store::JobRecord> records,
                         state_.store->ChildrenOf(job.record.job.id));
  for (const store::JobRecord& record : records) Adopt(job, record);
  return absl::OkStatus();
}

void FlowChildren::Adopt(LiveJob& parent, const store::JobRecord& record) {
  LiveChild& child = parent.flow->children[record.job.step];
  child.id = record.job.id;
  if (parent.record.job.spec.sweep) {
    child.values = ValuesOf(*parent.record.job.spec.sweep, record.job.spec);
  }
  RefreshOne(parent, child, record.last);
}

absl::Status FlowChildren::Refresh(LiveJob& parent, Effects& effects) {
  const bool is_sweep = parent.record.job.spec.sweep.has_value();
  for (auto& [step, child] : parent.flow->children) {
    if (child.child.state != ChildState::kActive) continue;
    store::Event last;
    if (const LiveJob* const live = table_.Find(child.id)) {
      last = live->record.last;
    } else {
      TUTTI_ASSIGN_OR_RETURN(const store::JobRecord record, state_.store->GetJob(child.id));
      last = record.last;
    }
    if (is_sweep) ReadMetrics(parent, step, child, IsEnd(last.state), effects);
    RefreshOne(parent, child, last);
  }
  return absl::OkStatus();
}

void FlowChildren::ReadMetrics(const LiveJob& sweep, const std::string& step, LiveChild& trial,
                               bool has_ended, Effects& effects) {
  if (trial.reading || trial.read_to_the_end) return;
  const store::Job& job = sweep.record.job;
  if (trial.metrics == nullptr) {
    trial.metrics =
        std::make_shared<TrialMetrics>(state_.files.FolderOf(trial.id), job.spec.sweep->metric);
  }
  trial.reading = true;
  effects.tasks.push_back({trial.id, [this, id = job.id, step, metrics = trial.metrics, has_ended] {
                             const bool any = metrics->ReadOn(has_ended);
                             NoteMetrics(id, step, metrics, any, has_ended);
                           }});
}

void FlowChildren::NoteMetrics(const std::string& sweep, const std::string& step,
                               const std::shared_ptr<TrialMetrics>& metrics, bool any,
                               bool to_the_end) {
  flow::MetricReports reports;
  if (any || to_the_end) reports = metrics->reports();
  StateLock lock(state_);
  const LiveJob* const parent = table_.Find(sweep);
  if (parent == nullptr || parent->flow == nullptr) return;
  const auto found = parent->flow->children.find(step);
  if (found == parent->flow->children.end() || found->second.metrics != metrics) return;
  LiveChild& trial = found->second;
  trial.reading = false;
  trial.read_to_the_end = to_the_end;
  if (!any && !to_the_end) return;
  trial.reports = std::move(reports);
  state_.Wake();
}

void FlowChildren::RefreshOne(const LiveJob& parent, LiveChild& child, const store::Event& last) {
  const bool is_trial = parent.record.job.spec.sweep.has_value();
  child.child.queued = last.state == JobState::kQueued;
  if (is_trial && IsEnd(last.state) && !child.read_to_the_end) return;
  child.child.state = StateOfChild(last.state);
  child.child.reason = last.reason;
  if (!IsEnd(last.state)) return;
  child.child.ended = last.time;
  child.child.reused = !EventDetailFromJson(last.detail).reused_from.empty();
}

}  // namespace tutti::service
