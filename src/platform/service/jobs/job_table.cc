#include "platform/service/jobs/job_table.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "platform/service/attempt/node_room.h"
#include "platform/service/jobs/next_attempt.h"
#include "platform/service/jobs/placed_job.h"

namespace tutti::service {
namespace {

using store::JobState;

// Returns what the event of that step tells programs.
EventDetail DetailOf(const LiveJob& job, const Step& step) {
  EventDetail detail{.former = job.former,
                     .begun_before = job.begun_before,
                     .begun_free = job.begun_free,
                     .avoid = job.avoid,
                     .cause = step.cause,
                     .failures = step.failures,
                     .begun_at = job.begun_at};
  if (step.state == JobState::kQueued) {  // it is begun again
    detail.former = FormerAfter(job);
    detail.begun_before = job.attempt();
    detail.begun_free = FreeAfter(job, step);
    detail.avoid = AvoidAfter(job);
    detail.begun_at.reset();
  } else if (job.placed != nullptr) {
    detail.placement = job.placed->placement;
  }
  return detail;
}

// The clock may have been set back since the job's last event, or since a line of its output.
absl::Time TimeOfNextEvent(const SharedState& state, const LiveJob& job) {
  const absl::Time now = std::max(state.clock->Now(), job.record.last.time);
  return job.placed == nullptr ? now : job.placed->logs->InOrder(now);
}

// That a job is placed is on the disk before a launcher may run, and its end before one is told.
store::Durability DurabilityOf(const LiveJob& job, JobState state) {
  const bool is_between =
      state != JobState::kQueued && state != JobState::kProvisioning && !IsEnd(state);
  const bool may_go = is_between && !OutlivesThisMachine(job);
  return may_go ? store::Durability::kCrash : store::Durability::kDeferred;
}

constexpr absl::Duration kPatienceWithLogs = absl::Seconds(2);

// Returns whether the wall's clock may have been set back since the job began to run.
bool ClockMayHaveGoneBack(const SharedState& state, const LiveJob& job) {
  if (!job.begun_at || !job.record.started) return false;
  if (job.begun_at->boot_id != state.options.boot_id) return true;
  const absl::Duration runs = state.clock->SinceBoot() - job.begun_at->since_boot;
  return state.clock->Now() + absl::Milliseconds(1) < *job.record.started + runs;
}

}  // namespace

bool OutlivesThisMachine(const LiveJob& job) {
  return job.placed == nullptr || job.placed->placement.boot_id.empty();
}

absl::Duration RunTimeOf(const SharedState& state, const LiveJob& job) {
  if (!job.record.started) return absl::ZeroDuration();
  if (job.begun_at && job.begun_at->boot_id == state.options.boot_id) {
    return state.clock->SinceBoot() - job.begun_at->since_boot;
  }
  return state.clock->Now() - *job.record.started;
}

absl::StatusOr<LiveJob*> JobTable::Rebuild(store::JobRecord record) {
  auto job = std::make_unique<LiveJob>();
  EventDetail detail = EventDetailFromJson(record.last.detail);
  job->record = std::move(record);
  job->cause = detail.cause;
  job->former = std::move(detail.former);
  job->begun_before = detail.begun_before;
  job->begun_free = detail.begun_free;
  job->avoid = std::move(detail.avoid);
  job->begun_at = std::move(detail.begun_at);
  if (detail.placement) {
    TUTTI_ASSIGN_OR_RETURN(
        job->placed, RebuildPlacedJob(state_, job->record.job.id, *std::move(detail.placement)));
    job->placed->started = job->record.last.state != JobState::kProvisioning;
    if (ClockMayHaveGoneBack(state_, *job)) {
      job->placed->wait_for_logs_until = state_.clock->SinceBoot() + kPatienceWithLogs;
    }
  }
  return &Insert(std::move(job));
}

LiveJob& JobTable::Add(const store::JobRecord& record) {
  auto job = std::make_unique<LiveJob>();
  job->record = record;
  return Insert(std::move(job));
}

LiveJob& JobTable::Insert(std::unique_ptr<LiveJob> inserted) {
  const store::Job& fixed = inserted->record.job;
  LiveJob& job = *(live_[fixed.id] = std::move(inserted));
  by_sequence_[job.record.job.sequence] = &job;
  if (job.record.job.spec.kind != spec::JobKind::kCommand) {
    job.flow = std::make_unique<LiveFlow>();
    const auto& sweep = job.record.job.spec.sweep;
    if (sweep) job.flow->trials = std::make_unique<flow::SweepTrials>(*sweep);
    flows_.insert(&job);
  } else if (job.placed != nullptr) {
    NotePlaced(job);
  } else {
    Enqueue(job);
  }
  return job;
}

void JobTable::Enqueue(LiveJob& job) {
  const store::Job& fixed = job.record.job;
  if (fixed.spec.compute != "local") {
    to_hand_over_[fixed.spec.compute][fixed.sequence] = &job;
    return;
  }
  waiting_.Add({.id = fixed.id,
                .priority = fixed.spec.priority,
                .sequence = fixed.sequence,
                .node_count = fixed.spec.instance_count,
                .time_limit = fixed.spec.timeout,
                .avoid = job.avoid,
                .share = NodeShareOf(fixed.spec)});
}

void JobTable::Dequeue(const LiveJob& job) {
  const store::Job& fixed = job.record.job;
  waiting_.Remove(fixed.id);
  waits_.Forget(fixed.id);
  const auto jobs = to_hand_over_.find(fixed.spec.compute);
  if (jobs != to_hand_over_.end()) jobs->second.erase(fixed.sequence);
}

void JobTable::Place(LiveJob& job, std::unique_ptr<PlacedJob> placed) {
  job.placed = std::move(placed);
  NotePlaced(job);
}

void JobTable::NotePlaced(LiveJob& job) {
  Dequeue(job);
  job.placed->logs->InOrder(job.record.last.time);  // lines come behind it
  placed_.insert(&job);
}

void JobTable::Remove(const LiveJob& job) {
  const std::string id = job.record.job.id;
  Dequeue(job);
  by_sequence_.erase(job.record.job.sequence);
  state_.problems.ForgetJob(id);
  live_.erase(id);
}

LiveJob* JobTable::Find(absl::string_view id) const {
  const auto live = live_.find(id);
  return live == live_.end() ? nullptr : live->second.get();
}

LiveJob* JobTable::FindBySequence(int64_t sequence) const {
  const auto found = by_sequence_.find(sequence);
  return found == by_sequence_.end() ? nullptr : found->second;
}

LiveJob* JobTable::FindByAllocation(absl::string_view allocation) const {
  LiveJob* const job = Find(JobOfAllocation(allocation));
  return job != nullptr && AllocationOf(*job) == allocation ? job : nullptr;
}

LiveJob* JobTable::FindPlaced(absl::string_view allocation) const {
  LiveJob* const job = FindByAllocation(allocation);
  return job != nullptr && job->placed != nullptr ? job : nullptr;
}

bool JobTable::IsStillNeeded(absl::string_view allocation) const {
  const LiveJob* const job = Find(JobOfAllocation(allocation));
  if (job == nullptr || !job->former) return false;
  return job->former->allocation == allocation &&
         (job->placed == nullptr || !job->placed->gang.AllPrepared());
}

absl::Status JobTable::Append(LiveJob& job, const Step& step) {
  const bool begins = step.state == JobState::kRunning && !job.record.started;
  if (begins) job.begun_at = BegunAt{state_.options.boot_id, state_.clock->SinceBoot()};
  const EventDetail detail = DetailOf(job, step);
  TUTTI_ASSIGN_OR_RETURN(store::Event event,
                         state_.store->AppendEvent(job.record.job.id, job.record.last.sequence,
                                                   {.time = TimeOfNextEvent(state_, job),
                                                    .state = step.state,
                                                    .reason = step.reason,
                                                    .detail = ToJson(detail)},
                                                   DurabilityOf(job, step.state)));
  if (begins) job.record.started = event.time;
  job.record.last = std::move(event);
  if (job.flow != nullptr && job.cause != step.cause) job.flow->changed = true;
  job.cause = step.cause;
  Announce(job.record.job, job.record.last, detail);
  return absl::OkStatus();
}

void JobTable::AnnounceInserted(const store::JobRecord& record, std::vector<FirstEvent> events) {
  // One transaction has written them, and nothing else in between.
  int64_t sequence = record.last.sequence - static_cast<int64_t>(events.size());
  for (FirstEvent& first : events) {
    first.event.sequence = ++sequence;
    Announce(record.job, first.event, first.detail);
  }
}

void JobTable::Announce(const store::Job& job, const store::Event& event,
                        const EventDetail& detail) {
  for (EventListener* const listener : listeners_) listener->OnEvent(job, event, detail);
}

absl::Status JobTable::BeginAgain(LiveJob& job, const Step& end) {
  TUTTI_RETURN_IF_ERROR(Append(job, StepToNextAttempt(job, end)));
  BeginNextAttempt(job, end, state_.clock->SinceBoot());
  Enqueue(job);
  return absl::OkStatus();
}

absl::StatusOr<store::JobRecord> JobTable::Cancel(LiveJob& job, const std::string& why) {
  if (job.placed == nullptr && job.flow == nullptr) {
    const bool asked = why == kCancelAsked;
    TUTTI_RETURN_IF_ERROR(Append(
        job, {JobState::kCanceled, asked ? "canceled before it started" : why, Cause::kCanceled}));
    store::JobRecord record = job.record;
    Remove(job);
    state_.Wake();
    return record;
  }
  const bool is_served = job.cause == Cause::kServed;
  if (!MustStop(job.cause) || MightBeginAgain(job) || is_served) {
    TUTTI_RETURN_IF_ERROR(Append(job, {JobState::kFinalizing, why, Cause::kCanceled}));
    // Its launchers were told, and go on with their outputs.
    if (is_served && job.placed != nullptr) job.placed->stopped = false;
    state_.Wake();
  }
  return job.record;
}

}  // namespace tutti::service
