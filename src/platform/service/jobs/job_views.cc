#include "platform/service/jobs/job_views.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/text/utf8.h"
#include "platform/service/jobs/placed_job.h"

namespace tutti::service {
namespace {

constexpr absl::Duration kTriesAgain = absl::Seconds(10);
constexpr size_t kSummariesOfATurn = 256;  // a fraction of a millisecond
constexpr int kFormersOfAPage = 50, kPagesOfFormers = 10;

std::string DisplayNameOf(const store::Job& job) {
  return job.spec.display_name.empty() ? job.id : job.spec.display_name;
}

JobSummary Summary(const store::JobRecord& record) {
  const spec::JobSpec& spec = record.job.spec;
  return {.id = record.job.id,
          .sequence = record.job.sequence,
          .display_name = DisplayNameOf(record.job),
          .experiment_name = spec.experiment_name,
          .command = base::BoundedUtf8(spec.command.substr(0, spec.command.find('\n')),
                                       JobSummary::kLongestCommand),
          .state = record.last.state,
          .reason = record.last.reason,
          .created = record.job.created,
          .started = record.started,
          .ended = record.ended(),
          .node_count = spec.kind == spec::JobKind::kCommand ? spec.instance_count : 0,
          .priority = spec.priority};
}

// Returns the folder and the file, or a script's command without its arguments, of which a job is.
// A file is named as its user wrote it, from whatever folder.
std::string ScriptOf(const spec::JobSpec& spec) {
  const auto program = spec.origin.find("program");
  return absl::StrCat(spec.directory, "\n",
                      program != spec.origin.end()
                          ? program->second
                          : std::filesystem::path(spec.file_name).filename().string());
}

// Returns the whole status of a job that has ended. Needs no lock.
JobStatus StatusAlone(const store::JobRecord& record) {
  JobStatus status{.record = record, .reason = record.last.reason};
  EventDetail detail = EventDetailFromJson(record.last.detail);
  status.failures = std::move(detail.failures);
  if (detail.placement) {
    for (const PlacedNode& node : detail.placement->nodes) {
      status.nodes.push_back(node.name);
      if (!node.cores.empty()) status.shares.push_back(node);
    }
  }
  return status;
}

// Returns what a queued job waits for; the reason is "" if nothing is known.
scheduler::Wait WaitOf(const SharedState& state, const JobTable& table, const LiveJob& job)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock) {
  const std::string& id = job.record.job.id;
  if (!job.handed_over && !job.being_handed) {
    const std::string& compute = job.record.job.spec.compute;
    const std::string why = compute.empty() ? "" : state.engines.WhyOutOfReach(compute);
    if (!why.empty()) return {id, absl::StrCat("waits: ", why), job.expected_start};
  }
  if (const scheduler::Wait* const wait = table.WaitOf(job)) return *wait;
  return {id, job.waits_for, job.expected_start};
}

// Returns what is said of the time at which a job that waits is expected to start.
StartIs StartIsOf(const scheduler::Wait& wait, const LiveJob& job) {
  if (!wait.expected_start) return StartIs::kNotKnown;
  if (job.record.job.spec.compute != "local") return StartIs::kPlan;
  return wait.starts_by_then ? StartIs::kLatest : StartIs::kEstimate;
}

// Says what of a job with nodes cannot go on now; "" if nothing is known. Launchers that were
// refused something try again every second or so.
std::string WhatHoldsItUp(const SharedState& state, const PlacedJob& job) {
  if (state.clock->SinceBoot() - job.held_up_at < kTriesAgain) return job.held_up;
  return job.gang.held();
}

// Returns the ranks of a job that has no nodes; a pipeline or a sweep has no ranks.
std::vector<RankState> RanksWithoutNodes(const spec::JobSpec& spec) {
  if (spec.kind != spec::JobKind::kCommand) return {};
  std::vector<RankState> ranks(spec.WorldSize());
  for (size_t i = 0; i < ranks.size(); ++i) ranks[i].rank = static_cast<int>(i);
  return ranks;
}

// Returns the ranks of a job that has ended, by what the launchers of its last attempt reported.
// Needs no lock.
absl::StatusOr<std::vector<RankState>> RanksOfEnded(const SharedState& state,
                                                    const store::JobRecord& record) {
  std::optional<Placement> placement = EventDetailFromJson(record.last.detail).placement;
  if (!placement) return RanksWithoutNodes(record.job.spec);
  Gang gang(*placement);
  for (int node = 0; node < gang.size(); ++node) {
    TUTTI_ASSIGN_OR_RETURN(const std::vector<std::string> lines,
                           state.store->LauncherEvents(placement->allocation, node));
    for (const std::string& line : lines) gang.Apply(node, line, absl::ZeroDuration());
  }
  return gang.Ranks(/*is_over=*/true);
}

bool Wanted(const store::JobFilter& filter, store::JobState state) {
  return filter.states.empty() ||
         std::find(filter.states.begin(), filter.states.end(), state) != filter.states.end();
}

}  // namespace

absl::StatusOr<JobStatus> JobViews::Get(absl::string_view id) const {
  {
    StateLock lock(state_);
    if (const LiveJob* const live = table_.Find(id)) return StatusOf(live->record);
  }
  TUTTI_ASSIGN_OR_RETURN(const store::JobRecord record, state_.store->GetJob(id));
  return StatusAlone(record);
}

absl::StatusOr<std::string> JobViews::FormerOf(const store::Job& job) const {
  if (!job.parent.empty()) return "";
  const std::string script = ScriptOf(job.spec);
  store::JobFilter earlier{.limit = kFormersOfAPage, .before = job.sequence};
  for (int page = 0; page < kPagesOfFormers; ++page) {
    TUTTI_ASSIGN_OR_RETURN(const std::vector<store::JobRecord> records,
                           state_.store->ListJobs(earlier));
    for (const store::JobRecord& record : records) {
      if (ScriptOf(record.job.spec) == script) return record.job.id;
      earlier.before = record.job.sequence;
    }
    if (records.size() < kFormersOfAPage) break;
  }
  return "";
}

absl::StatusOr<std::vector<JobStatus>> JobViews::List(const store::JobFilter& filter) const {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<store::JobRecord> records,
                         state_.store->ListJobs(filter));
  std::vector<JobStatus> jobs;
  jobs.reserve(records.size());
  for (const store::JobRecord& record : records) jobs.push_back(StatusAlone(record));
  const auto has_ended = [](const JobStatus& job) { return IsEnd(job.record.last.state); };
  if (std::all_of(jobs.begin(), jobs.end(), has_ended)) return jobs;
  StateLock lock(state_);
  for (JobStatus& job : jobs) AddLive(job);
  return jobs;
}

JobStatus JobViews::StatusOf(const store::JobRecord& record) const {
  JobStatus status = StatusAlone(record);
  AddLive(status);
  return status;
}

void JobViews::AddLive(JobStatus& status) const {
  const store::JobRecord& record = status.record;
  if (IsEnd(record.last.state)) return;
  const LiveJob* const live = table_.Find(record.job.id);
  if (live == nullptr) return;
  if (record.last.state == store::JobState::kQueued) {
    scheduler::Wait wait = WaitOf(state_, table_, *live);
    status.expected_start = wait.expected_start;
    status.start_is = StartIsOf(wait, *live);
    status.queue = PlaceOf(*live);
    if (!wait.reason.empty()) status.reason = std::move(wait.reason);
  } else if (live->placed != nullptr) {
    const std::string why = state_.engines.WhyOutOfReach(live->record.job.spec.compute);
    if (!why.empty()) status.reason = why;
    std::string held_up = WhatHoldsItUp(state_, *live->placed);
    if (!held_up.empty()) status.reason = std::move(held_up);
    if (!live->placed->output_status.ok()) status.reason = OutputProblem(state_, record.job.id);
  }
}

std::optional<QueuePlace> JobViews::PlaceOf(const LiveJob& job) const {
  const std::optional<size_t> ahead = table_.waiting().AheadOf(job.record.job.id);
  if (!ahead) return std::nullopt;
  QueuePlace place{.place = static_cast<int64_t>(*ahead) + 1};
  for (std::string& id : table_.waiting().FirstIds(std::min(*ahead, QueuePlace::kMostNamed))) {
    const LiveJob* const first = table_.Find(id);
    std::string name = first == nullptr ? id : DisplayNameOf(first->record.job);
    place.ahead.push_back({.id = std::move(id), .display_name = std::move(name)});
  }
  return place;
}

JobSummary JobViews::SummaryOf(const LiveJob& job) const {
  JobSummary summary = Summary(job.record);
  if (job.placed != nullptr) {
    const std::string why = state_.engines.WhyOutOfReach(job.record.job.spec.compute);
    if (!why.empty()) summary.reason = why;
    std::string held_up = WhatHoldsItUp(state_, *job.placed);
    if (!held_up.empty()) summary.reason = std::move(held_up);
  }
  if (job.record.last.state != store::JobState::kQueued) return summary;
  scheduler::Wait wait = WaitOf(state_, table_, job);
  summary.expected_start = wait.expected_start;
  summary.start_is = StartIsOf(wait, job);
  if (!wait.reason.empty()) summary.reason = std::move(wait.reason);
  return summary;
}

std::vector<JobSummary> JobViews::LiveSummaries(const std::vector<int64_t>& page,
                                                const store::JobFilter& filter,
                                                std::vector<int64_t>& ended) const {
  std::vector<JobSummary> summaries;
  summaries.reserve(page.size());
  const auto add = [&](size_t i) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock) {
    const LiveJob* const job = table_.FindBySequence(page[i]);
    if (job == nullptr) {
      ended.push_back(page[i]);
    } else if (Wanted(filter, job->record.last.state)) {
      summaries.push_back(SummaryOf(*job));
    }
  };
  TakeTurns(state_, page.size(), kSummariesOfATurn, add);
  return summaries;
}

absl::StatusOr<EventPage> JobViews::EventsBefore(absl::string_view id, int64_t before,
                                                 int limit) const {
  EventPage page;
  TUTTI_ASSIGN_OR_RETURN(page.events, state_.store->EventsBefore(id, before, limit + 1));
  if (std::ssize(page.events) <= limit) return page;
  page.events.erase(page.events.begin());
  page.before = page.events.front().sequence;
  return page;
}

std::optional<std::vector<RankState>> JobViews::RanksOfLive(absl::string_view id) const {
  StateLock lock(state_);
  const LiveJob* const live = table_.Find(id);
  if (live == nullptr) return std::nullopt;
  if (live->placed == nullptr) return RanksWithoutNodes(live->record.job.spec);
  return live->placed->gang.Ranks(/*is_over=*/false);
}

absl::StatusOr<std::vector<RankState>> JobViews::RanksOf(absl::string_view id,
                                                         std::optional<int> only) const {
  std::vector<RankState> ranks;
  if (auto live = RanksOfLive(id)) {
    ranks = *std::move(live);
  } else {
    TUTTI_ASSIGN_OR_RETURN(const store::JobRecord record, state_.store->GetJob(id));
    TUTTI_ASSIGN_OR_RETURN(ranks, RanksOfEnded(state_, record));
  }
  if (only) std::erase_if(ranks, [&](const RankState& state) { return state.rank != *only; });
  return ranks;
}

std::map<std::string, ComputeQueue> JobViews::ClusterQueues(size_t most) const {
  std::map<std::string, std::map<int64_t, std::string>> first;
  std::map<std::string, ComputeQueue> queues;
  table_.VisitLive([&](const LiveJob& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock) {
    const store::Job& fixed = job.record.job;
    if (job.flow != nullptr || job.placed != nullptr || fixed.spec.compute == "local") return;
    ++queues[fixed.spec.compute].count;
    auto& ids = first[fixed.spec.compute];
    ids.emplace(fixed.sequence, fixed.id);
    if (ids.size() > most) ids.erase(std::prev(ids.end()));
  });
  for (auto& [compute, queue] : queues) {
    queue.compute = compute;
    for (auto& [sequence, id] : first[compute]) queue.jobs.push_back({.summary = {.id = id}});
  }
  return queues;
}

std::vector<ComputeQueue> JobViews::ListQueues(size_t most) const {
  std::map<std::string, ComputeQueue> queues = ClusterQueues(most);
  {
    StateLock lock(state_);
    ComputeQueue& local = queues["local"];
    local.compute = "local";
    local.count = static_cast<int64_t>(table_.waiting().size());
    for (std::string& id : table_.waiting().FirstIds(most)) {
      local.jobs.push_back(
          {.summary = {.id = std::move(id)}, .place = static_cast<int64_t>(local.jobs.size()) + 1});
    }
  }
  std::vector<ComputeQueue> told;
  for (auto& [compute, queue] : queues) {
    std::vector<ComputeQueue::Job> jobs = std::move(queue.jobs);
    queue.jobs.clear();
    const auto add = [&](size_t i) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock) {
      const LiveJob* const job = table_.Find(jobs[i].summary.id);
      if (job == nullptr || job->placed != nullptr) return;  // has begun or ended meanwhile
      queue.jobs.push_back({.summary = SummaryOf(*job),
                            .parent = job->record.job.parent,
                            .step = job->record.job.step,
                            .place = jobs[i].place});
    };
    TakeTurns(state_, jobs.size(), kSummariesOfATurn, add);
    if (queue.count > 0) told.push_back(std::move(queue));
  }
  return told;
}

absl::StatusOr<std::vector<JobSummary>> JobViews::ListSummaries(
    const store::JobFilter& filter) const {
  TUTTI_ASSIGN_OR_RETURN(std::vector<int64_t> page, state_.store->Sequences(filter));
  const bool ends_alone = !filter.states.empty() &&
                          std::all_of(filter.states.begin(), filter.states.end(), store::IsEnd);
  std::vector<int64_t> ended;
  std::vector<JobSummary> summaries;
  if (ends_alone) {
    ended = std::move(page);
  } else {
    summaries = LiveSummaries(page, filter, ended);
  }
  TUTTI_ASSIGN_OR_RETURN(const std::vector<store::JobRecord> records, state_.store->JobsOf(ended));
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
