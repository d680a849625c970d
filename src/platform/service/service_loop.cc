// The loop: look at the engine, take every step that can be taken, then act on the engine. A step
// is written before its effect begins, and what a loss of power must not take is on the disk; an
// effect that a crash cut short is begun again.
#include <spdlog/spdlog.h>
#include <time.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "platform/service/service_core.h"

namespace tutti::service {
namespace {

using store::JobState;

constexpr int kMasterPort = 6105;
constexpr int kStartPort = 6104;
constexpr absl::Duration kIdle = absl::Seconds(5);
// A launcher ends milliseconds after its job; the next job may wait for just that node.
constexpr absl::Duration kEndsSoon = absl::Seconds(1);
constexpr absl::Duration kSoon = absl::Milliseconds(4);
constexpr absl::Duration kBetweenDrains = absl::Seconds(1);
constexpr absl::Duration kBetweenStops = absl::Seconds(30);
// Who waits behind so many is told why every so often, and not at every change.
constexpr size_t kLongQueue = 200;
constexpr absl::Duration kBetweenExplanations = absl::Seconds(1);
// A look at ten thousand jobs that wait takes tens of milliseconds: then it is not taken five times
// a second. What one wakes for is done at once also then.
constexpr int kRestPerWork = 120;
constexpr absl::Duration kWorthARest = absl::Milliseconds(2);
// Launchers end a job at its time limit; this much later the service does.
constexpr absl::Duration kTimeLimitSlack = absl::Seconds(30);
// What a cluster is given to say how it ended a job.
constexpr absl::Duration kVerdictLimit = absl::Minutes(1);

// A clock that was set back ends the wait.
bool IsWithin(absl::Duration span, absl::Time since, absl::Time now) {
  return now >= since && now - since < span;
}

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
  chores_.Start();
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
  chores_.Stop();
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
    return IsWithin(kEndsSoon, entry.second.since, now);
  });
  const absl::Duration rest = work_ < kWorthARest ? absl::ZeroDuration() : work_ * kRestPerWork;
  const absl::Duration wanted =
      ends_soon ? std::min(kSoon, options_.observe_interval) : options_.observe_interval;
  return std::max(rest, wanted);
}

bool ServiceCore::ObservationDue() const {
  return !IsWithin(ObserveInterval(), last_observation_, clock_->Now());
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

void ServiceCore::Complain(const std::string& about, const absl::Status& status) {
  std::string& last = complaints_[about];
  if (status.ok()) {
    complaints_.erase(about);
  } else if (last != status.ToString()) {
    last = status.ToString();
    spdlog::error("{}: {}", about, last);
  }
}

engine::Engine* ServiceCore::EngineOf(absl::string_view compute) const {
  if (compute == "local") return engines_.local;
  const auto found = engines_.clusters.find(compute);
  return found == engines_.clusters.end() ? nullptr : found->second;
}

void ServiceCore::Observed(const std::string& compute,
                           const std::vector<engine::AllocationState>& states, Effects& effects) {
  compute == "local" ? void(observed_once_ = true) : void(observed_clusters_.insert(compute));
  std::unordered_map<std::string_view, const engine::AllocationState*> by_id;
  by_id.reserve(states.size());
  for (const engine::AllocationState& state : states) by_id[state.id] = &state;
  for (const LiveJob* job : placed_) {
    if (job->record.job.spec.compute != compute) continue;
    const bool begins = job->record.last.state == JobState::kProvisioning && !job->placed->started;
    if (begins) continue;  // Start is still to come
    const auto found = by_id.find(job->placed->placement.allocation);
    ObservedJob(*job->placed, found == by_id.end() ? nullptr : found->second);
  }
  std::erase_if(leaving_, [&](const auto& entry) {
    return entry.second.compute == compute && !by_id.contains(entry.first);
  });
  for (const engine::AllocationState& state : states) {
    LiveJob* const job = LiveJobOf(state.id);
    if (job == nullptr) {
      ObservedLeaving(compute, state, effects);
    } else if (job->placed == nullptr) {
      ObservedQueued(*job, state);
    }
  }
}

// `state` is null if the engine knows nothing of the allocation.
void ServiceCore::ObservedJob(PlacedJob& job, const engine::AllocationState* state) {
  const absl::Time now = clock_->Now();
  if (state == nullptr) job.judged = true;
  for (int node = 0; node < job.gang.size(); ++node) {
    const bool alive = state != nullptr && node < static_cast<int>(state->launcher_alive.size()) &&
                       state->launcher_alive[node];
    if (state != nullptr && !state->waits && !alive) {
      job.verdict = state->reason;
      job.lost = state->lost;
      job.judged = true;
    }
    if (job.gang.done(node)) continue;
    if (state == nullptr) {
      job.gang.GiveUp(node, "the engine has no trace of the allocation", now);
      continue;
    }
    if (alive) continue;
    LiveNode& live = job.nodes[node];
    job.gang.NoteDeath(node, now);
    if (IsWithin(kBetweenDrains, live.last_drain, now)) continue;
    if (live.drains >= options_.drain_attempts) {
      job.gang.GiveUp(node, "what it had not yet sent is lost", now);
      continue;
    }
    live.last_drain = now;
    ++live.drains;
    job.started = false;  // Start again: it delivers what the dead launcher left
    job.stopped = false;  // and one that had never begun must not begin now
  }
}

void ServiceCore::ObservedLeaving(const std::string& compute, const engine::AllocationState& state,
                                  Effects& effects) {
  const absl::Time now = clock_->Now();
  if (state.waits) {
    effects.stops.push_back({compute, state.id});
    return;
  }
  const bool alive = std::find(state.launcher_alive.begin(), state.launcher_alive.end(), true) !=
                     state.launcher_alive.end();
  if (!alive && IsStillNeeded(state.id)) {
    leaving_.erase(state.id);
    return;
  }
  if (!alive) {
    effects.releases.push_back({compute, state.id});
    return;
  }
  Leaving& leaving =
      leaving_.try_emplace(state.id, Leaving{.compute = compute, .since = now}).first->second;
  if (IsWithin(kBetweenStops, std::max(leaving.since, leaving.last_stop), now)) return;
  leaving.last_stop = now;
  effects.stops.push_back({compute, state.id});
}

void ServiceCore::AdvanceAll(Effects& effects) {
  std::erase_if(placed_, [&](LiveJob* job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const std::string id = job->record.job.id;
    const Placement placement = job->placed->placement;
    const absl::StatusOr<bool> ended = Advance(*job, effects);
    Complain(absl::StrCat("job ", id, " cannot go on"), ended.status());
    if (!ended.ok() || !*ended) return false;
    Leaving leaving{.compute = job->record.job.spec.compute, .since = clock_->Now()};
    for (const PlacedNode& node : placement.nodes) {
      if (leaving.compute == "local") leaving.nodes.push_back(node.name);
    }
    leaving_[placement.allocation] = std::move(leaving);
    if (IsEnd(job->record.last.state)) live_.erase(id);
    return true;
  });
}

absl::StatusOr<bool> ServiceCore::Advance(LiveJob& job, Effects& effects) {
  if (job.placed == nullptr) return false;
  PlacedJob& placed = *job.placed;
  GiveUpOnTheSilent(placed);
  const store::Job& fixed = job.record.job;
  while (true) {
    JobNow now{.state = job.record.last.state,
               .cause = job.cause,
               .world_size = fixed.spec.WorldSize(),
               .parameter_servers = fixed.spec.distribution.parameter_server_count,
               .node_count = placed.gang.size(),
               .environment = fixed.spec.environment.is_host ? "" : fixed.spec.environment.name,
               .reason = job.record.last.reason,
               .note = placed.logs->full() ? OutputNote(options_.log_limit) : "",
               .time_limit = fixed.spec.timeout,
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
    if (IsEnd(step->state)) return true;
  }
  AddEffects(job, effects);
  return false;
}

// For a moment after its launchers' last words.
bool ServiceCore::VerdictMayCome(const LiveJob& job) const {
  if (job.record.job.spec.compute == "local" || job.placed->judged) return false;
  absl::Time last_word = absl::InfinitePast();
  for (const LiveNode& node : job.placed->nodes) last_word = std::max(last_word, node.last_word);
  return IsWithin(kVerdictLimit, last_word, clock_->Now());
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

// On a cluster nobody else tells of a launcher whose node is gone, maybe for long; here the engine
// sees whether it lives.
void ServiceCore::GiveUpOnTheSilent(PlacedJob& job) {
  const absl::Time now = clock_->Now();
  const bool is_here = !job.placement.boot_id.empty();
  for (int node = 0; node < job.gang.size(); ++node) {
    if (job.gang.done(node)) continue;
    const absl::Time last_word = std::max(job.nodes[node].last_word, job.started_at);
    std::string reason;
    if (job.stopped &&
        now - std::max(last_word, job.stopped_at) > options_.stop_grace + options_.silence_limit) {
      reason = "it was told to stop and has not been heard of since";
    } else if (job.started && job.gang.count(node) == 0 &&
               now - last_word > options_.report_limit) {
      reason =
          absl::StrCat("it has not reported within ", absl::FormatDuration(options_.report_limit));
    }
    if (reason.empty()) continue;
    if (!is_here) job.gang.NoteDeath(node, now);
    job.gang.GiveUp(node, reason, now);
  }
}

std::vector<scheduler::PendingJob> ServiceCore::Pending() const {
  std::vector<scheduler::PendingJob> pending;
  for (const auto& [id, job] : live_) {
    const spec::JobSpec& spec = job->record.job.spec;
    if (job->placed != nullptr || job->flow != nullptr || spec.compute != "local") continue;
    pending.push_back({.id = id,
                       .priority = spec.priority,
                       .sequence = job->record.job.sequence,
                       .node_count = spec.instance_count,
                       .time_limit = spec.timeout});
  }
  return pending;
}

std::vector<scheduler::RunningJob> ServiceCore::Running(absl::Time now) const {
  std::vector<scheduler::RunningJob> running;
  for (const LiveJob* job : placed_) {
    if (job->record.job.spec.compute != "local") continue;
    scheduler::RunningJob entry{.id = job->record.job.id};
    for (const PlacedNode& node : job->placed->placement.nodes) entry.nodes.push_back(node.name);
    entry.expected_end =
        job->record.started.value_or(now) + job->record.job.spec.timeout + options_.stop_grace;
    running.push_back(std::move(entry));
  }
  for (const auto& [id, nodes] : held_)
    running.push_back({.id = id, .nodes = nodes, .expected_end = now});
  for (const auto& [allocation, leaving] : leaving_) {
    if (leaving.compute != "local") continue;
    running.push_back({.id = JobOfAllocation(allocation),
                       .nodes = leaving.nodes,
                       .expected_end = now + options_.stop_grace});
  }
  return running;
}

bool ServiceCore::SchedulingPays(absl::Time now) const {
  if (live_.size() - placed_.size() < kLongQueue || now >= next_explanation_) return true;
  size_t held = 0;
  for (const LiveJob* job : placed_) {
    if (job->record.job.spec.compute == "local") held += job->placed->placement.nodes.size();
  }
  for (const auto& [allocation, leaving] : leaving_) held += leaving.nodes.size();
  return held < nodes_.size();
}

void ServiceCore::WakeForNewJob() {
  if (SchedulingPays(clock_->Now())) Wake();
}

void ServiceCore::ScheduleQueued(Effects& effects) {
  const absl::Time now = clock_->Now();
  if (!SchedulingPays(now)) return;
  next_explanation_ = now + kBetweenExplanations;
  const std::vector<scheduler::PendingJob> pending = Pending();
  if (pending.empty()) return;
  const scheduler::Decision decision = scheduler::Schedule(pending, Running(now), NodeNames(), now);
  for (const scheduler::Start& start : decision.starts) {
    const absl::Status status = StartOn(*live_.at(start.job_id), start.nodes, effects);
    Complain(absl::StrCat("job ", start.job_id, " cannot be started"), status);
  }
  for (const scheduler::Wait& wait : decision.waits) {
    LiveJob& job = *live_.at(wait.job_id);
    job.waits_for = wait.reason;
    job.expected_start = wait.expected_start;
  }
}

std::vector<std::string> ServiceCore::NodeNames() const {
  std::vector<std::string> names;
  names.reserve(nodes_.size());
  for (const engine::Node& node : nodes_) names.push_back(node.name);
  return names;
}

absl::StatusOr<Placement> ServiceCore::PlacementOn(const spec::JobSpec& spec,
                                                   const std::vector<std::string>& names) const {
  std::vector<engine::Node> nodes;
  for (const std::string& name : names) {
    const auto found = std::find_if(nodes_.begin(), nodes_.end(),
                                    [&](const engine::Node& node) { return node.name == name; });
    if (found == nodes_.end()) return absl::InternalError(absl::StrCat("no node ", name));
    nodes.push_back(*found);
  }
  const std::string& first = nodes.front().address;
  const FreePort master = options_.find_port(first, kMasterPort);
  Placement placement = Place(spec, "", nodes, master.port);
  placement.claims = {master};
  if (spec.distribution.kind == spec::DistributionKind::kMpi && nodes.size() > 1) {
    placement.claims.push_back(options_.find_port(first, kStartPort));
    placement.start_port = placement.claims.back().port;
  }
  placement.boot_id = options_.boot_id;
  return placement;
}

std::string ServiceCore::ReasonOfStart(const Placement& placement) {
  return absl::StrCat("starting on ", absl::StrJoin(placement.nodes, ", ",
                                                    [](std::string* out, const PlacedNode& node) {
                                                      absl::StrAppend(out, node.name);
                                                    }));
}

absl::Status ServiceCore::StartOn(LiveJob& job, const std::vector<std::string>& names,
                                  Effects& effects) {
  TUTTI_ASSIGN_OR_RETURN(Placement placement, PlacementOn(job.record.job.spec, names));
  placement.allocation = AllocationOf(job);
  const std::string reason = ReasonOfStart(placement);
  TUTTI_ASSIGN_OR_RETURN(job.placed, RebuildGang(job.record.job.id, std::move(placement)));
  absl::Status written = Append(job, {JobState::kProvisioning, reason});
  if (!written.ok()) {
    job.placed.reset();
    return written;
  }
  placed_.insert(&job);
  Effects more;
  TUTTI_RETURN_IF_ERROR(Advance(job, more).status());
  effects.starts.insert(effects.starts.end(), more.starts.begin(), more.starts.end());
  return absl::OkStatus();
}

void ServiceCore::Perform(const Effects& effects) {
  for (const auto& chore : effects.chores) chores_.Do(chore);
  for (const StartOf& start : effects.starts) {
    engine::Engine* const engine = EngineOf(start.compute);
    if (engine != nullptr) Started(start.allocation.id, engine->Start(start.allocation));
  }
  for (const At& at : effects.stops) {
    engine::Engine* const engine = EngineOf(at.compute);
    if (engine == nullptr) continue;
    const absl::Status status = engine->Stop(at.allocation, options_.stop_grace);
    absl::MutexLock lock(&mutex_);
    Complain(absl::StrCat("allocation ", at.allocation, " cannot be stopped"), status);
    const LiveJob* const job = JobOn(at.allocation);
    if (job == nullptr || !status.ok()) continue;
    job->placed->stopped = true;
    job->placed->stopped_at = clock_->Now();
  }
  for (const At& at : effects.releases) {
    engine::Engine* const engine = EngineOf(at.compute);
    if (engine == nullptr) continue;
    const absl::Status status = engine->Release(at.allocation);
    absl::MutexLock lock(&mutex_);
    Complain(absl::StrCat("allocation ", at.allocation, " cannot be released"), status);
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
    Complain(absl::StrCat("job ", id, " cannot be handed over"), status);
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
