#include "platform/service/flow/flow_children.h"

#include <filesystem>
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

absl::Status FlowChildren::Refresh(LiveJob& parent) {
  for (auto& [step, child] : parent.flow->children) {
    if (child.child.state != ChildState::kActive) continue;
    if (const LiveJob* const live = table_.Find(child.id)) {
      RefreshOne(parent, child, live->record.last);
      continue;
    }
    const auto record = state_.store->GetJob(child.id);
    TUTTI_RETURN_IF_ERROR(record.status());
    RefreshOne(parent, child, record->last);
  }
  return absl::OkStatus();
}

void FlowChildren::RefreshOne(const LiveJob& parent, LiveChild& child, const store::Event& last) {
  const bool was_active = child.child.state == ChildState::kActive;
  child.child.state = StateOfChild(last.state);
  child.child.reason = last.reason;
  child.child.queued = last.state == JobState::kQueued;
  if (IsEnd(last.state)) {
    child.child.ended = last.time;
    child.child.reused = !EventDetailFromJson(last.detail).reused_from.empty();
  }
  const auto& sweep = parent.record.job.spec.sweep;
  if (!sweep || !was_active) return;
  const std::filesystem::path folder = state_.files.FolderOf(child.id);
  const uintmax_t bytes = MetricsBytes(folder);
  if (bytes == child.metrics_bytes && !IsEnd(last.state)) return;
  child.metrics_bytes = bytes;
  child.reports = ReportsOf(folder, sweep->metric);
}

}  // namespace tutti::service
