#include "platform/service/flow/child_views.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/flow/next_of_sweep.h"
#include "platform/service/flow/trial.h"
#include "platform/service/flow/trial_cursor.h"

namespace tutti::service {
namespace {

constexpr int kFirstTrials = 100, kBestTrials = 10, kFailedTrials = 5;  // in a sweep's own view

ChildStatus StatusOf(const spec::Sweep& sweep, store::TrialRecord record) {
  ChildStatus trial{.step = record.job.job.step, .metric = MetricOf(sweep, record.cost)};
  const size_t count = std::min(record.values.size(), sweep.parameters.size());
  for (size_t i = 0; i < count; ++i) {
    trial.values.emplace_back(sweep.parameters[i].name, std::move(record.values[i]));
  }
  trial.job.emplace();
  trial.job->reason = record.job.last.reason;
  trial.job->record = std::move(record.job);
  return trial;
}

}  // namespace

absl::StatusOr<Children> ChildViews::ChildrenOf(absl::string_view id) const {
  TUTTI_ASSIGN_OR_RETURN(const JobStatus parent, views_.Get(id));
  const spec::JobSpec& spec = parent.record.job.spec;
  if (spec.kind == spec::JobKind::kCommand) return Children();
  return spec.sweep ? FirstTrialsOf(parent.record) : StepsOf(parent.record);
}

absl::StatusOr<TrialPage> ChildViews::TrialsOf(absl::string_view id,
                                               const TrialQuery& query) const {
  TUTTI_ASSIGN_OR_RETURN(const JobStatus sweep, views_.Get(id));
  if (sweep.record.job.spec.sweep) return PageOf(sweep.record, query);
  return absl::InvalidArgumentError(absl::StrCat("job ", id, " is no sweep, so it has no trials"));
}

absl::StatusOr<Children> ChildViews::StepsOf(const store::JobRecord& pipeline) const {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<store::JobRecord> records,
                         state_.store->ChildrenOf(pipeline.job.id));
  std::map<std::string, const store::JobRecord*> by_step;
  for (const store::JobRecord& record : records) by_step[record.job.step] = &record;
  Children children;
  for (const spec::Step& step : pipeline.job.spec.steps) {
    const auto found = by_step.find(step.name);
    ChildStatus child{.step = step.name, .kind = step.job.kind};
    if (found != by_step.end()) {
      TUTTI_RETURN_IF_ERROR(FillStep(*found->second, child));
    } else {
      child.never = IsEnd(pipeline.last.state);
    }
    children.list.push_back(std::move(child));
  }
  return children;
}

absl::Status ChildViews::FillStep(const store::JobRecord& record, ChildStatus& child) const {
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

absl::StatusOr<Children> ChildViews::FirstTrialsOf(const store::JobRecord& sweep) const {
  TrialSummary summary;
  TUTTI_ASSIGN_OR_RETURN(summary.counts, state_.store->CountChildren(sweep.job.id));
  TUTTI_ASSIGN_OR_RETURN(TrialPage first, PageOf(sweep, {.limit = kFirstTrials}));
  TUTTI_ASSIGN_OR_RETURN(TrialPage best, PageOf(sweep, {.order = store::TrialFilter::Order::kBest,
                                                        .limit = kBestTrials}));
  TUTTI_ASSIGN_OR_RETURN(TrialPage failed, PageOf(sweep, {.states = {store::JobState::kFailed},
                                                          .limit = kFailedTrials}));
  summary.best = std::move(best.trials);
  summary.failed = std::move(failed.trials);
  summary.next = std::move(first.next);
  return Children{.list = std::move(first.trials), .trials = std::move(summary)};
}

absl::StatusOr<TrialPage> ChildViews::PageOf(const store::JobRecord& sweep,
                                             const TrialQuery& query) const {
  using Order = store::TrialFilter::Order;
  store::TrialFilter filter{.sweep = sweep.job.id,
                            .states = query.states,
                            .order = query.order,
                            .limit = query.limit + 1};
  if (!query.after.empty()) TUTTI_RETURN_IF_ERROR(BeginBehind(query.after, filter));
  TUTTI_ASSIGN_OR_RETURN(std::vector<store::TrialRecord> records, state_.store->TrialsOf(filter));
  TUTTI_ASSIGN_OR_RETURN(
      const std::vector<store::TrialRecord> best,
      state_.store->TrialsOf({.sweep = sweep.job.id, .order = Order::kBest, .limit = 1}));
  TrialPage page;
  if (std::ssize(records) > query.limit) {
    records.pop_back();
    page.next = TrialCursor(query.order, records.back());
  }
  for (store::TrialRecord& record : records) {
    const int64_t sequence = record.job.job.sequence;
    page.trials.push_back(StatusOf(*sweep.job.spec.sweep, std::move(record)));
    page.trials.back().best = !best.empty() && best.front().job.job.sequence == sequence;
  }
  if (!IsEnd(sweep.last.state)) AddLive(sweep, page.trials);  // else all of them have ended
  return page;
}

void ChildViews::AddLive(const store::JobRecord& sweep, std::vector<ChildStatus>& trials) const {
  StateLock lock(state_);
  const LiveJob* const live = table_.Find(sweep.job.id);
  const bool is_known = live != nullptr && live->flow != nullptr && live->flow->trials != nullptr;
  for (ChildStatus& trial : trials) {
    views_.AddLive(*trial.job);
    if (!is_known) continue;
    // One whose reports have been read to their end is in the store.
    const flow::SweepTrials& known = *live->flow->trials;
    const int number = flow::TrialNumber(trial.step);
    if (known.active().contains(number)) trial.metric = known.metric(number);
  }
}

}  // namespace tutti::service
