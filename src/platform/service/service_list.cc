// Lists of very many jobs. Those that have not ended are in memory; of the others the store is
// asked, and only for those that belong on the page.
#include <algorithm>

#include "base/status.h"
#include "platform/service/service_core.h"

namespace tutti::service {
namespace {

JobSummary Summary(const store::JobRecord& record) {
  const spec::JobSpec& spec = record.job.spec;
  return {.id = record.job.id,
          .sequence = record.job.sequence,
          .display_name = spec.display_name.empty() ? record.job.id : spec.display_name,
          .experiment_name = spec.experiment_name,
          .state = record.last.state,
          .reason = record.last.reason,
          .created = record.job.created,
          .started = record.started,
          .ended = record.ended(),
          .node_count = spec.kind == spec::JobKind::kCommand ? spec.instance_count : 0,
          .priority = spec.priority};
}

bool Wanted(const store::JobFilter& filter, store::JobState state) {
  return filter.states.empty() ||
         std::find(filter.states.begin(), filter.states.end(), state) != filter.states.end();
}

}  // namespace

JobSummary ServiceCore::SummaryOf(const LiveJob& job) const {
  JobSummary summary = Summary(job.record);
  if (job.placed != nullptr) {
    const std::string why = WhyOutOfReach(job.record.job.spec.compute);
    if (!why.empty()) summary.reason = why;
  }
  if (job.record.last.state != store::JobState::kQueued) return summary;
  if (!job.waits_for.empty()) summary.reason = job.waits_for;
  summary.expected_start = job.expected_start;
  return summary;
}

absl::StatusOr<std::vector<JobSummary>> ServiceCore::ListSummaries(const store::JobFilter& filter) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<int64_t> page, store_->Sequences(filter));
  std::vector<JobSummary> summaries;
  summaries.reserve(page.size());
  std::vector<int64_t> ended;
  {
    absl::MutexLock lock(&mutex_);
    std::vector<std::pair<int64_t, const LiveJob*>> live;
    live.reserve(live_.size());
    for (const auto& [id, job] : live_) live.emplace_back(job->record.job.sequence, job.get());
    std::sort(live.begin(), live.end());
    for (const int64_t sequence : page) {
      const auto found = std::lower_bound(
          live.begin(), live.end(), std::pair(sequence, static_cast<const LiveJob*>(nullptr)));
      if (found == live.end() || found->first != sequence) {
        ended.push_back(sequence);
      } else if (Wanted(filter, found->second->record.last.state)) {
        summaries.push_back(SummaryOf(*found->second));
      }
    }
  }
  TUTTI_ASSIGN_OR_RETURN(const std::vector<store::JobRecord> records, store_->JobsOf(ended));
  for (const store::JobRecord& record : records) {
    if (Wanted(filter, record.last.state)) summaries.push_back(Summary(record));
  }
  if (!records.empty()) {
    std::sort(summaries.begin(), summaries.end(),
              [](const JobSummary& a, const JobSummary& b) { return a.sequence > b.sequence; });
  }
  return summaries;
}

}  // namespace tutti::service
