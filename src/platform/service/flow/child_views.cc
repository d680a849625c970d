#include "platform/service/flow/child_views.h"

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "base/status.h"
#include "platform/flow/next_of_sweep.h"
#include "platform/service/flow/trial.h"
#include "platform/service/flow/trial_metrics.h"

namespace tutti::service {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(2);  // with the folders of trials

// Marks the completed trial whose metric is best, of equal ones the first.
void MarkBest(const spec::Sweep& sweep, std::vector<ChildStatus>& trials) {
  ChildStatus* best = nullptr;
  for (ChildStatus& trial : trials) {
    if (!trial.metric || trial.job->record.last.state != store::JobState::kCompleted) continue;
    const bool better = best == nullptr || (sweep.maximize ? *trial.metric > *best->metric
                                                           : *trial.metric < *best->metric);
    if (better) best = &trial;
  }
  if (best != nullptr) best->best = true;
}

}  // namespace

absl::StatusOr<std::vector<ChildStatus>> ChildViews::ChildrenOf(absl::string_view id) const {
  TUTTI_ASSIGN_OR_RETURN(const JobStatus parent, views_.Get(id));
  const spec::JobSpec& spec = parent.record.job.spec;
  if (spec.kind == spec::JobKind::kCommand) return std::vector<ChildStatus>();
  return spec.sweep ? TrialsOf(parent.record) : StepsOf(parent.record);
}

absl::StatusOr<std::vector<ChildStatus>> ChildViews::StepsOf(
    const store::JobRecord& pipeline) const {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<store::JobRecord> records,
                         state_.store->ChildrenOf(pipeline.job.id));
  std::map<std::string, const store::JobRecord*> by_step;
  for (const store::JobRecord& record : records) by_step[record.job.step] = &record;
  std::vector<ChildStatus> children;
  for (const spec::Step& step : pipeline.job.spec.steps) {
    const auto found = by_step.find(step.name);
    ChildStatus child{.step = step.name, .kind = step.job.kind};
    if (found != by_step.end()) {
      TUTTI_RETURN_IF_ERROR(FillStep(*found->second, child));
    } else {
      child.never = IsEnd(pipeline.last.state);
    }
    children.push_back(std::move(child));
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

absl::StatusOr<std::vector<ChildStatus>> ChildViews::TrialsOf(
    const store::JobRecord& parent) const {
  const spec::Sweep& sweep = *parent.job.spec.sweep;
  TUTTI_ASSIGN_OR_RETURN(std::vector<store::JobRecord> records,
                         state_.store->ChildrenOf(parent.job.id, store::Content::kWithoutSpec));
  TUTTI_ASSIGN_OR_RETURN(std::vector<TrialFacts> facts, FactsOf(parent.job, records));
  std::vector<ChildStatus> trials(records.size());
  for (size_t i = 0; i < records.size(); ++i) {
    ChildStatus& trial = trials[i];
    trial.step = records[i].job.step;
    trial.metric = facts[i].metric;
    for (size_t k = 0; k < facts[i].values.size(); ++k) {
      trial.values.emplace_back(sweep.parameters[k].name, std::move(facts[i].values[k]));
    }
    trial.job.emplace();
    trial.job->reason = records[i].last.reason;
    trial.job->record = std::move(records[i]);
  }
  MarkBest(sweep, trials);
  if (IsEnd(parent.last.state)) return trials;  // as all of them have
  StateLock lock(state_);
  for (ChildStatus& trial : trials) views_.AddLive(*trial.job);
  return trials;
}

absl::StatusOr<std::vector<TrialFacts>> ChildViews::FactsOf(
    const store::Job& sweep, const std::vector<store::JobRecord>& trials) const {
  std::vector<TrialFacts> facts(trials.size());
  std::map<int64_t, TrialFacts*> unknown;  // by the trial's sequence
  for (size_t i = 0; i < trials.size(); ++i) {
    if (auto known = ended_trials_.Find(trials[i].job.sequence)) {
      facts[i] = *std::move(known);
    } else {
      unknown[trials[i].job.sequence] = &facts[i];
    }
  }
  if (!unknown.empty()) AddLive(sweep, trials, unknown);
  if (unknown.empty()) return facts;
  std::vector<int64_t> sequences;
  for (const auto& [sequence, of_trial] : unknown) sequences.push_back(sequence);
  TUTTI_ASSIGN_OR_RETURN(const std::vector<store::JobRecord> whole,
                         state_.store->JobsOf(sequences));
  for (const store::JobRecord& trial : whole) {
    unknown[trial.job.sequence]->values = ValuesOf(*sweep.spec.sweep, trial.job.spec);
  }
  ReadMetrics(sweep, trials, std::move(unknown));
  return facts;
}

void ChildViews::AddLive(const store::Job& sweep, const std::vector<store::JobRecord>& trials,
                         std::map<int64_t, TrialFacts*>& unknown) const {
  StateLock lock(state_);
  const LiveJob* const live = table_.Find(sweep.id);
  if (live == nullptr || live->flow == nullptr || live->flow->trials == nullptr) return;
  const flow::SweepTrials& known = *live->flow->trials;
  for (const store::JobRecord& trial : trials) {
    const auto found = unknown.find(trial.job.sequence);
    const int number = flow::TrialNumber(trial.job.step);
    if (found == unknown.end() || number < 1 || number > known.size()) continue;
    *found->second = {known.values(number), known.metric(number)};
    // Else it still runs, or what it has reported is yet to be read to the end.
    if (!known.active().contains(number)) ended_trials_.Keep(found->first, *found->second);
    unknown.erase(found);
  }
}

void ChildViews::ReadMetrics(const store::Job& sweep, const std::vector<store::JobRecord>& trials,
                             std::map<int64_t, TrialFacts*> unknown) const {
  struct Reading {
    std::filesystem::path folder;
    bool has_ended = false;
    TrialFacts facts;
  };
  const auto readings = std::make_shared<std::map<int64_t, Reading>>();
  for (const store::JobRecord& trial : trials) {
    const auto found = unknown.find(trial.job.sequence);
    if (found == unknown.end()) continue;
    (*readings)[trial.job.sequence] = {state_.files.FolderOf(trial.job.id), IsEnd(trial.last.state),
                                       *found->second};
  }
  const auto read = [this, readings, sweep = *sweep.spec.sweep] {
    for (auto& [sequence, reading] : *readings) {
      const auto reports = ReportsOf(reading.folder, sweep.metric);
      if (!reports.values.empty()) reading.facts.metric = flow::BestOf(sweep, reports.values);
      const bool is_all = !reports.values.empty() || HasReadableLogs(reading.folder);
      if (reading.has_ended && is_all) ended_trials_.Keep(sequence, reading.facts);
    }
  };
  // One that comes too late is kept all the same, for the next who asks.
  if (!ReadFiles(state_, sweep.id, read, base::Deadline::After(kPatience))) return;
  for (auto& [sequence, reading] : *readings) *unknown[sequence] = std::move(reading.facts);
}

}  // namespace tutti::service
