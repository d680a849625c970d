// The loop: look at the engine, take every step that can be taken, then act on the engine. A step
// is written before its effect begins, and what a loss of power must not take is on the disk; an
// effect that a crash cut short is begun again.
#include <spdlog/spdlog.h>
#include <time.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/service/admission/disk_space.h"
#include "platform/service/service_core.h"

namespace tutti::service {
namespace {

using store::JobState;

constexpr absl::Duration kIdle = absl::Seconds(5);
// A launcher ends milliseconds after its job; the next job may wait for just that node.
constexpr absl::Duration kEndsSoon = absl::Seconds(1);
constexpr absl::Duration kSoon = absl::Milliseconds(4);
// A look at ten thousand jobs that wait takes tens of milliseconds: then it is not taken five times
// a second. What one wakes for is done at once also then.
constexpr int kRestPerWork = 120;
constexpr absl::Duration kWorthARest = absl::Milliseconds(2);
// Launchers end a job at its time limit; this much later the service does.
constexpr absl::Duration kTimeLimitSlack = absl::Seconds(30);

// Of this thread, which others that want the processor do not change.
absl::Duration ProcessorTime() {
  timespec time = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return absl::DurationFromTimespec(time);
}

std::string OutputNote(uint64_t limit) {
  return absl::StrCat("it prints more than the ", limit >> 20,
                      " MiB that are kept of a job's output (tutti serve --log-limit): what comes "
                      "after that is left out, but for the end of each file");
}

}  // namespace

void ServiceCore::Run() {
  background_.Start();
  loop_ = std::thread([this] { Loop(); });
}

void ServiceCore::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    wake_.SignalAll();
    changed_.SignalAll();
    for (const auto& [id, job] : live_) job->bell->Ring();
  }
  if (loop_.joinable()) loop_.join();
  background_.Stop();
}

void ServiceCore::Loop() {
  while (true) {
    Tick();
    absl::MutexLock lock(&mutex_);
    const bool busy = !live_.empty() || !leaving_.empty() || !observed_once_;
    if (!dirty_ && !stopping_) {
      wake_.WaitWithTimeout(&mutex_, busy ? ObserveInterval() : kIdle);
    }
    if (stopping_) return;
  }
}

absl::Duration ServiceCore::ObserveInterval() const {
  const absl::Time now = clock_->Now();
  const bool ends_soon = std::any_of(leaving_.begin(), leaving_.end(), [now](const auto& entry) {
    return base::IsWithin(kEndsSoon, entry.second.since, now);
  });
  const absl::Duration rest = work_ < kWorthARest ? absl::ZeroDuration() : work_ * kRestPerWork;
  const absl::Duration wanted =
      ends_soon ? std::min(kSoon, options_.observe_interval) : options_.observe_interval;
  return std::max(rest, wanted);
}

bool ServiceCore::ObservationDue() const {
  return !base::IsWithin(ObserveInterval(), last_observation_, clock_->Now());
}

void ServiceCore::Tick() {
  absl::MutexLock one_at_a_time(&tick_mutex_);
  const absl::Duration began = ProcessorTime();
  bool observe = false;
  {
    absl::MutexLock lock(&mutex_);
    dirty_ = false;
    observe = ObservationDue();
  }
  using States = absl::StatusOr<std::vector<engine::AllocationState>>;
  std::map<std::string, States> states;
  if (observe) {
    states.emplace("local", engines_.local->Observe());
    for (const auto& [name, engine] : engines_.clusters) states.emplace(name, engine->Observe());
  }
  Effects effects;
  {
    absl::MutexLock lock(&mutex_);
    if (observe) last_observation_ = clock_->Now();
    for (const auto& [compute, observed] : states) {
      const std::string where = compute == "local" ? "" : absl::StrCat(" of compute ", compute);
      Complain(absl::StrCat("the engine", where, " cannot be observed"), observed.status());
      if (observed.ok()) Observed(compute, *observed, effects);
    }
    AdvanceAll(effects);
    AdvanceFlows(effects);
    if (observed_once_) ScheduleQueued(effects);
    HandOver(effects);
    if (observe) work_ = ProcessorTime() - began;
  }
  Perform(effects);
}

void ServiceCore::Complain(const std::string& about, const absl::Status& status,
                           const Subject& subject) {
  if (status.ok()) {
    complaints_.erase(about);
    return;
  }
  Complaint& complaint = complaints_[about];
  complaint.subject = subject;
  if (complaint.why == status.message()) return;
  complaint.why = std::string(status.message());
  spdlog::error("{}: {}", about, complaint.why);
}

void ServiceCore::ForgetComplaintsOf(absl::string_view job) {
  std::erase_if(complaints_, [&](const auto& entry) { return entry.second.subject.job == job; });
}

void ServiceCore::EndLive(const LiveJob& job) {
  const std::string id = job.record.job.id;
  ForgetComplaintsOf(id);
  live_.erase(id);
}

std::vector<std::string> ServiceCore::Troubles() {
  std::vector<std::string> troubles;
  for (const auto& [compute, why] : engines_.broken) {
    troubles.push_back(absl::StrCat("compute ", compute, " cannot be used: ", why));
  }
  if (const absl::Status space = CheckSpace(options_.directory); !space.ok()) {
    troubles.emplace_back(space.message());
  }
  absl::MutexLock lock(&mutex_);
  for (const auto& [about, complaint] : complaints_) {
    troubles.push_back(absl::StrCat(about, ": ", complaint.why));
  }
  return troubles;
}

engine::Engine* ServiceCore::EngineOf(absl::string_view compute) const {
  if (compute == "local") return engines_.local;
  const auto found = engines_.clusters.find(compute);
  return found == engines_.clusters.end() ? nullptr : found->second;
}

std::string ServiceCore::OutputTrouble(const std::string& job) const {
  return absl::StrCat("the output of job ", job, " cannot be kept: repair ",
                      (files_.FolderOf(job) / "logs").native(), " or cancel the job");
}

std::string ServiceCore::StartTrouble(const std::string& job) {
  return absl::StrCat("job ", job, " cannot be started");
}

void ServiceCore::LookAfterLogs(const std::string& job, JobLogs& logs) {
  if (logs.opened()) return;
  Complain(OutputTrouble(job), logs.TryToOpen(), {.job = job});
}

void ServiceCore::AdvanceAll(Effects& effects) {
  std::erase_if(placed_, [&](LiveJob* job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const std::string id = job->record.job.id;
    const Placement placement = job->placed->placement;
    LookAfterLogs(id, *job->placed->logs);
    const absl::StatusOr<bool> ended = Advance(*job, effects);
    Complain(absl::StrCat("job ", id, " cannot go on"), ended.status(), {.job = id});
    if (!ended.ok() || !*ended) return false;
    Complain(OutputTrouble(id), absl::OkStatus());
    Leaving leaving{.compute = job->record.job.spec.compute, .since = clock_->Now()};
    for (const PlacedNode& node : placement.nodes) {
      if (leaving.compute == "local") leaving.nodes.push_back(node.name);
    }
    leaving_[placement.allocation] = std::move(leaving);
    if (IsEnd(job->record.last.state)) EndLive(*job);
    return true;
  });
}

absl::StatusOr<bool> ServiceCore::Advance(LiveJob& job, Effects& effects) {
  if (job.placed == nullptr) return false;
  PlacedJob& placed = *job.placed;
  GiveUpOnTheSilent(job, effects);
  const store::Job& fixed = job.record.job;
  while (true) {
    JobNow now{.state = job.record.last.state,
               .cause = job.cause,
               .world_size = fixed.spec.WorldSize(),
               .servers = fixed.spec.ServerCount(),
               .ray = fixed.spec.distribution.kind == spec::DistributionKind::kRay,
               .node_count = placed.gang.size(),
               .environment = fixed.spec.environment.is_host ? "" : fixed.spec.environment.name,
               .reason = job.record.last.reason,
               .note = placed.logs->full() ? OutputNote(options_.log_limit) : "",
               .time_limit = fixed.spec.timeout,
               .judged = fixed.spec.compute != "local" && placed.judged,
               .verdict = placed.verdict,
               .lost = placed.lost,
               .verdict_may_come = VerdictMayCome(job)};
    if (job.record.started) {
      now.overdue =
          *job.record.started + fixed.spec.timeout + options_.stop_grace + kTimeLimitSlack;
    }
    std::optional<Step> step = NextStep(now, placed.gang, clock_->Now());
    if (!step) break;
    const std::string& why = job.record.last.reason;
    if (step->state == JobState::kCanceled && why != kCancelAsked) step->reason = why;
    if (IsEnd(step->state)) TUTTI_RETURN_IF_ERROR(placed.logs->Close());
    if (MayBeginAgain(job, *step)) {
      TUTTI_RETURN_IF_ERROR(BeginAgain(job, step->reason));
      return true;
    }
    TUTTI_RETURN_IF_ERROR(Append(job, *step));
    StampOnceReusable(job, effects);
    if (IsEnd(step->state)) return true;
  }
  AddEffects(job, effects);
  return false;
}

void ServiceCore::AddEffects(const LiveJob& job, Effects& effects) const {
  const bool begins = job.record.last.state == JobState::kProvisioning;
  const PlacedJob& placed = *job.placed;
  const bool drains = std::any_of(placed.nodes.begin(), placed.nodes.end(),
                                  [](const LiveNode& node) { return node.drains > 0; });
  const Placement& placement = placed.placement;
  if (!placed.started && (begins || drains)) {
    effects.starts.push_back(
        {.compute = job.record.job.spec.compute, .allocation = AllocationFor(job, placement)});
  }
  if (MustStop(job.cause) && !placed.stopped) {
    effects.stops.push_back({job.record.job.spec.compute, placement.allocation});
  }
}

void ServiceCore::Perform(const Effects& effects) {
  for (const auto& task : effects.tasks) background_.Do(task);
  for (const StartOf& start : effects.starts) {
    engine::Engine* const engine = EngineOf(start.compute);
    if (engine != nullptr) Started(start.allocation.id, engine->Start(start.allocation));
  }
  for (const At& at : effects.stops) {
    engine::Engine* const engine = EngineOf(at.compute);
    if (engine == nullptr) continue;
    const absl::Status status = engine->Stop(at.allocation, options_.stop_grace);
    absl::MutexLock lock(&mutex_);
    Complain(absl::StrCat("allocation ", at.allocation, " cannot be stopped"), status, {.at = at});
    const LiveJob* const job = JobOn(at.allocation);
    if (job == nullptr || !status.ok()) continue;
    job->placed->stopped = true;
    job->placed->stopped_at = clock_->Now();
  }
  for (const auto& [at, node] : effects.kills) {
    engine::Engine* const engine = EngineOf(at.compute);
    if (engine == nullptr) continue;
    const absl::Status status = engine->Kill(at.allocation, node);
    absl::MutexLock lock(&mutex_);
    Complain(absl::StrCat("a launcher of allocation ", at.allocation, " cannot be killed"), status,
             {.at = at});
  }
  for (const At& at : effects.releases) {
    engine::Engine* const engine = EngineOf(at.compute);
    if (engine == nullptr) continue;
    const absl::Status status = engine->Release(at.allocation);
    absl::MutexLock lock(&mutex_);
    Complain(absl::StrCat("allocation ", at.allocation, " cannot be released"), status, {.at = at});
    if (!status.ok()) continue;
    leaving_.erase(at.allocation);
    Wake();
  }
}

// By then the job may have ended, and another have come under its name.
void ServiceCore::Started(const std::string& allocation, const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  LiveJob* const job = LiveJobOf(allocation);
  if (job == nullptr) return;
  const std::string& id = job->record.job.id;
  if (job->placed == nullptr) {  // handed to a cluster
    job->handed_over = status.ok();
    Complain(absl::StrCat("job ", id, " cannot be handed over"), status, {.job = id});
    return;
  }
  PlacedJob& placed = *job->placed;
  placed.started = true;
  placed.started_at = clock_->Now();
  if (status.ok()) return;
  spdlog::error("job {} cannot be started: {}", id, status.ToString());
  const bool begins = job->record.last.state == JobState::kProvisioning;
  for (int node = 0; begins && node < placed.gang.size(); ++node) {
    placed.gang.GiveUp(node, absl::StrCat("it could not be started: ", status.message()),
                       placed.started_at);
  }
  Wake();
}

}  // namespace tutti::service
