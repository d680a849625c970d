#include "platform/service/runs/job_runs.h"

#include <pwd.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/status.h"
#include "base/text/utf8.h"
#include "platform/service/attempt/launcher_token.h"
#include "platform/service/logs/job_logs.h"

namespace tutti::service {
namespace {

// Points of a metric in the tracking that are read for each answer.
constexpr int64_t kMostTracked = 16384;

using tracking::KeyValue;
using tracking::RunStatus;

constexpr char kJobTag[] = "tutti.job", kRunsQueue[] = "runs";
constexpr absl::Duration kFirstPause = absl::Seconds(10), kLongestPause = absl::Minutes(10);
constexpr absl::Duration kBetweenLogs = absl::Seconds(5), kAfterAFailedLog = absl::Minutes(1);
constexpr size_t kRunIdLength = 32;

RunStatus StatusAfter(store::JobState state) {
  if (state == store::JobState::kCompleted) return RunStatus::kFinished;
  return state == store::JobState::kFailed ? RunStatus::kFailed : RunStatus::kKilled;
}

// Returns the whole steps that lie in a range.
tracking::StepRange StepsOf(const MetricRange& range) {
  constexpr double kMost = 1e15;
  return {.first = static_cast<int64_t>(std::clamp(std::ceil(range.from), -kMost, kMost)),
          .last = static_cast<int64_t>(std::clamp(std::floor(range.to), -kMost, kMost))};
}

// Returns who all jobs belong to.
std::string UserName() {
  passwd entry = {};
  passwd* found = nullptr;
  std::string buffer(16 << 10, '\0');
  ::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found);
  return found == nullptr ? absl::StrCat(::geteuid()) : found->pw_name;
}

std::vector<KeyValue> TagsOf(const store::Job& job, const std::string& user) {
  std::vector<KeyValue> tags = {{"mlflow.user", user},
                                {"mlflow.source.type", "JOB"},
                                {"mlflow.source.name", tracking::CutTag(job.spec.command)},
                                {kJobTag, job.id}};
  if (!job.parent.empty()) tags.push_back({"tutti.parent", job.parent});
  if (!job.step.empty()) tags.push_back({"tutti.step", job.step});
  return tags;
}

std::string RunNameOf(const store::Job& job) {
  const std::string& name = job.spec.display_name.empty() ? job.id : job.spec.display_name;
  return base::BoundedUtf8(name, tracking::kMostRunNameLength);
}

}  // namespace

JobRuns::JobRuns(SharedState& state)
    : state_(state),
      user_(state.options.tracking == nullptr ? "" : UserName()),
      pause_(kFirstPause) {}

std::string RunIdOf(const store::Job& job) {
  const std::string hash = base::Hex(base::Sha256Of(
      absl::StrCat("run of ", job.id, ".", job.sequence, " of ", absl::ToUnixMicros(job.created))));
  return hash.substr(0, kRunIdLength);
}

void JobRuns::Rebuild(const JobTable& table) {
  if (state_.options.tracking == nullptr) return;
  absl::MutexLock lock(&mutex_);
  for (const auto& [id, job] : table.live()) runs_[RunIdOf(job->record.job)].job = id;
}

void JobRuns::EndPast() {
  if (state_.options.tracking == nullptr) return;
  {
    absl::MutexLock lock(&mutex_);
    unsettled_ = true;
  }
  EndDue();
}

void JobRuns::EndDue() {
  {
    absl::MutexLock lock(&mutex_);
    if (!unsettled_ || queued_ || state_.clock->SinceBoot() < next_try_) return;
    queued_ = true;
  }
  state_.tracking_work.Do(kRunsQueue, [this] {
    {
      absl::MutexLock lock(&mutex_);
      unsettled_ = queued_ = false;
    }
    Note(EndUnsettled());
  });
}

absl::Status JobRuns::EndUnsettled() {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<tracking::RunInfo> runs,
                         state_.options.tracking->UnsettledRuns());
  for (const tracking::RunInfo& run : runs) {
    if (state_.ending) return absl::OkStatus();  // the next service sees to it
    TUTTI_ASSIGN_OR_RETURN(const std::optional<End> end, EndOf(run));
    if (!end) continue;
    TUTTI_RETURN_IF_ERROR(Finish(*end));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<JobRuns::End>> JobRuns::EndOf(const tracking::RunInfo& run) {
  {
    absl::MutexLock lock(&mutex_);
    const auto known = runs_.find(run.id);
    if (known != runs_.end()) return known->second.end;  // nothing: the job goes on
  }
  const auto job = state_.store->GetJob(run.job);
  if (absl::IsNotFound(job.status()) || (job.ok() && RunIdOf(job->job) != run.id)) {
    return End{run.id, RunStatus::kKilled, absl::ToUnixMillis(state_.clock->Now()), run.job};
  }
  TUTTI_RETURN_IF_ERROR(job.status());
  if (!job->ended()) return std::nullopt;
  return End{run.id, StatusAfter(job->last.state), absl::ToUnixMillis(*job->ended()), run.job};
}

void JobRuns::OnEvent(const store::Job& job, const store::Event& event, const EventDetail&) {
  if (state_.options.tracking == nullptr || !IsEnd(event.state)) return;
  const End end{RunIdOf(job), StatusAfter(event.state), absl::ToUnixMillis(event.time), job.id};
  {
    const absl::Duration now = state_.clock->SinceBoot();
    absl::MutexLock lock(&mutex_);
    std::erase_if(runs_, [now](const auto& run) { return run.second.until <= now; });
    const auto run = runs_.find(end.run);
    if (run == runs_.end()) return;  // it has none
    run->second = {job.id, now + kTracksOn, end};
  }
  state_.tracking_work.Do(kRunsQueue, [this, end] { Write(end); });
}

// While others could not be ended, it waits with them.
void JobRuns::Write(const End& end) {
  {
    absl::MutexLock lock(&mutex_);
    if (unsettled_) return;
  }
  Note(Finish(end));
}

absl::Status JobRuns::Finish(const End& end) {
  TUTTI_RETURN_IF_ERROR(LogMetrics(end.run, end.job, /*to_the_end=*/true));
  return state_.options.tracking->EndJobRun(end.run, end.status, end.time);
}

void JobRuns::LogDue() {
  {
    absl::MutexLock lock(&mutex_);
    if (logging_ || runs_.empty() || state_.clock->SinceBoot() < next_log_) return;
    logging_ = true;
  }
  state_.tracking_work.Do(kRunsQueue, [this] { LogAll(); });
}

void JobRuns::LogAll() {
  std::vector<std::pair<std::string, std::string>> live;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [id, run] : runs_) {
      if (!run.end) live.emplace_back(id, run.job);
    }
  }
  absl::Status status;
  for (const auto& [id, job] : live) {
    if (state_.ending) break;
    status.Update(LogMetrics(id, job, /*to_the_end=*/false));
  }
  absl::MutexLock lock(&mutex_);
  logging_ = false;
  next_log_ = state_.clock->SinceBoot() + (status.ok() ? kBetweenLogs : kAfterAFailedLog);
}

absl::Status JobRuns::LogMetrics(const std::string& run, const std::string& job, bool to_the_end) {
  tracking::TrackingStore* const store = state_.options.tracking;
  if (!reported_.contains(run)) {
    const auto record = state_.store->GetJob(job);
    if (!record.ok() || RunIdOf(record->job) != run || !store->GetRunInfo(run).ok()) {
      return absl::OkStatus();
    }
    const auto files = RankFiles(state_.files.FolderOf(job) / "logs", LogStream::kMetrics);
    if (!files.ok() || !files->contains(0)) return absl::OkStatus();
    reported_.try_emplace(run, files->at(0), run, store);
  }
  const absl::Status logged = reported_.at(run).ReadOn(to_the_end);
  if (!logged.ok() || to_the_end) reported_.erase(run);
  if (logged.ok() || absl::IsResourceExhausted(logged)) return logged;
  spdlog::warn("job {}: MLflow's run of it lacks metrics: {}", job, logged.ToString());
  return absl::OkStatus();
}

void JobRuns::Note(const absl::Status& ended) {
  absl::MutexLock lock(&mutex_);
  if (ended.ok()) {
    pause_ = kFirstPause;
    said_.clear();
    return;
  }
  unsettled_ = true;
  next_try_ = state_.clock->SinceBoot() + pause_;
  pause_ = std::min(2 * pause_, kLongestPause);
  const std::string why(ended.message());
  if (std::exchange(said_, why) == why) return;
  spdlog::warn("MLflow's runs of jobs that have ended are not ended yet: {}", ended.ToString());
}

void JobRuns::Open(const store::Job& job) {
  if (state_.options.tracking == nullptr) return;
  absl::MutexLock lock(&mutex_);
  runs_[RunIdOf(job)].job = job.id;
}

absl::StatusOr<JobRun> JobRuns::Begin(const store::Job& job) {
  tracking::TrackingStore* const store = state_.options.tracking;
  if (store == nullptr) return absl::NotFoundError("this service has no MLflow tracking");
  const tracking::JobRunCreation creation{.id = RunIdOf(job),
                                          .job = job.id,
                                          .experiment = job.spec.experiment_name,
                                          .user = user_,
                                          .name = RunNameOf(job),
                                          .tags = TagsOf(job, user_)};
  const auto run = store->BeginJobRun(creation);
  // Its end may have been written before it was begun.
  if (HasEnded(creation.id)) {
    EndPast();
    return absl::AbortedError("the job has ended");
  }
  TUTTI_RETURN_IF_ERROR(run.status());
  TUTTI_ASSIGN_OR_RETURN(const tracking::Experiment experiment,
                         store->GetExperiment(run->experiment));
  return JobRun{run->id, experiment.name, RunToken(state_.options.launcher_key, run->id)};
}

bool JobRuns::HasEnded(const std::string& run) const {
  absl::MutexLock lock(&mutex_);
  const auto found = runs_.find(run);
  return found == runs_.end() || found->second.end.has_value();
}

bool JobRuns::MayTrack(const std::string& run) const {
  absl::MutexLock lock(&mutex_);
  const auto found = runs_.find(run);
  return found != runs_.end() && state_.clock->SinceBoot() < found->second.until;
}

absl::StatusOr<std::optional<tracking::Run>> JobRuns::Find(const store::Job& job) const {
  if (state_.options.tracking == nullptr) return std::nullopt;
  auto run = state_.options.tracking->GetJobRun(RunIdOf(job));
  if (absl::IsNotFound(run.status())) return std::nullopt;
  TUTTI_RETURN_IF_ERROR(run.status());
  return *std::move(run);
}

absl::Status JobRuns::AddTracked(const store::Job& job, const MetricQuery& query,
                                 std::vector<ReportedMetric>& metrics) const {
  TUTTI_ASSIGN_OR_RETURN(const std::optional<tracking::Run> run, Find(job));
  if (!run) return absl::OkStatus();
  std::set<std::string> in_file;
  for (const ReportedMetric& metric : metrics) {
    if (metric.run.empty()) in_file.insert(metric.name);
  }
  for (const tracking::Metric& metric : run->metrics) {
    if (absl::StartsWith(metric.key, "system/")) continue;
    if (!query.metric.empty() && metric.key != query.metric) continue;
    if (in_file.contains(metric.key)) continue;
    if (metrics.size() >= LoggedMetrics::kMostSeries) break;
    TUTTI_ASSIGN_OR_RETURN(const MetricSeries whole, Sample(run->info.id, metric.key, {}));
    ReportedMetric& added = metrics.emplace_back(whole.Report(query));
    if (!query.range || query.range->by_time) continue;
    TUTTI_ASSIGN_OR_RETURN(const MetricSeries finer,
                           Sample(run->info.id, metric.key, StepsOf(*query.range)));
    const ReportedMetric part = finer.Report(query);
    std::tie(added.course, added.span, added.first) =
        std::tuple(part.course, part.span, part.first);
  }
  return absl::OkStatus();
}

absl::StatusOr<MetricSeries> JobRuns::Sample(const std::string& run, const std::string& key,
                                             const tracking::StepRange& range) const {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<tracking::Point> points,
                         state_.options.tracking->Sample(run, key, range, kMostTracked));
  MetricSeries series(key, /*rank=*/0, run);
  for (const tracking::Point& point : points) {
    series.Add({point.value, point.step, static_cast<double>(point.time) / 1000});
  }
  return series;
}

absl::StatusOr<flow::MetricReports> TrackedReports(const SharedState& state, const std::string& job,
                                                   const std::string& metric) {
  flow::MetricReports reports;
  if (state.options.tracking == nullptr) return reports;
  TUTTI_ASSIGN_OR_RETURN(const store::JobRecord record, state.store->GetJob(job));
  TUTTI_ASSIGN_OR_RETURN(tracking::JobMetric logged,
                         state.options.tracking->MetricOfJob(RunIdOf(record.job), metric));
  reports.values = std::move(logged.values);
  // MLflow takes NaN and the infinities, which are no reports.
  std::erase_if(reports.values, [](double value) { return !std::isfinite(value); });
  reports.other_names.insert(logged.other_names.begin(), logged.other_names.end());
  return reports;
}

}  // namespace tutti::service
