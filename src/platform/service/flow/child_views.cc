#include "platform/service/flow/child_views.h"

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "base/status.h"
#include "platform/flow/next_of_sweep.h"
#include "platform/service/flow/trial.h"
#include "platform/service/flow/trial_metrics.h"

namespace tutti::service {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(2);  // with the folders of trials

}  // namespace

absl::StatusOr<std::vector<ChildStatus>> ChildViews::ChildrenOf(absl::string_view id) const {
  TUTTI_ASSIGN_OR_RETURN(const JobStatus parent, views_.Get(id));
  const spec::JobSpec& spec = parent.record.job.spec;
  if (spec.kind == spec::JobKind::kCommand) return std::vector<ChildStatus>();
  TUTTI_ASSIGN_OR_RETURN(const std::vector<store::JobRecord> records, state_.store->ChildrenOf(id));
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
    TUTTI_RETURN_IF_ERROR(FillTrials(parent.record.job, records, children));
  }
  return children;
}

absl::Status ChildViews::FillChild(const store::JobRecord& record, ChildStatus& child) const {
  {
    StateLock lock(state_);
    const LiveJob* const live = table_.Find(record.job.id);
    child.job = views_.StatusOf(live == nullptr ? record : live->record);
  }
  child.reused_from = EventDetailFromJson(record.last.detail).reused_from;
  if (record.job.spec.kind == spec::JobKind::kCommand) return absl::OkStatus();
  TUTTI_ASSIGN_OR_RETURN(child.children, ChildrenOf(record.job.id));
  return absl::OkStatus();
}

std::vector<std::optional<double>> ChildViews::MetricsOf(
    const store::Job& job, const std::vector<store::JobRecord>& records) const {
  std::vector<std::filesystem::path> folders;
  for (const store::JobRecord& record : records) {
    folders.push_back(state_.files.FolderOf(record.job.id));
  }
  const auto metrics = std::make_shared<std::vector<std::optional<double>>>(records.size());
  const bool read = ReadFiles(
      state_, job.id,
      [metrics, folders, sweep = *job.spec.sweep] {
        for (size_t i = 0; i < folders.size(); ++i) {
          const auto reports = ReportsOf(folders[i], sweep.metric);
          if (!reports.values.empty()) (*metrics)[i] = flow::BestOf(sweep, reports.values);
        }
      },
      base::Deadline::After(kPatience));
  return read ? *metrics : std::vector<std::optional<double>>(records.size());
}

absl::Status ChildViews::FillTrials(const store::Job& job,
                                    const std::vector<store::JobRecord>& records,
                                    std::vector<ChildStatus>& children) const {
  const spec::Sweep& sweep = *job.spec.sweep;
  const std::vector<std::optional<double>> metrics = MetricsOf(job, records);
  size_t best = records.size();
  for (const store::JobRecord& record : records) {
    ChildStatus child{.step = record.job.step};
    TUTTI_RETURN_IF_ERROR(FillChild(record, child));
    const flow::Values values = ValuesOf(sweep, record.job.spec);
    for (size_t i = 0; i < values.size(); ++i) {
      child.values.emplace_back(sweep.parameters[i].name, values[i]);
    }
    child.metric = metrics[&record - records.data()];
    children.push_back(std::move(child));
    const ChildStatus& now = children.back();
    if (!now.metric || now.job->record.last.state != store::JobState::kCompleted) continue;
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
