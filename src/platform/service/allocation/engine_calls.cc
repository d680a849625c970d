#include "platform/service/allocation/engine_calls.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/machine/mounts.h"
#include "platform/service/allocation/plan_queue.h"

namespace tutti::service {

namespace {

constexpr char kUnsynced[] =
    "the database cannot be brought onto the disk, and no job goes on until it can";

}  // namespace

bool EngineCalls::Enqueue(const std::string& compute, const std::string& key, const Call& call) {
  engine::Engine* const engine = state_.engines.Of(compute);
  if (engine == nullptr) return false;
  {
    absl::MutexLock lock(&mutex_);
    if (!under_way_.emplace(compute, key).second) return false;
  }
  state_.engine_work.Do(compute, [this, engine, call, id = std::pair(compute, key)] {
    call(*engine);
    absl::MutexLock lock(&mutex_);
    under_way_.erase(id);
  });
  return true;
}

void EngineCalls::Enact(const std::string& compute, const std::string& key, const Call& call) {
  if (state_.engines.WhyOutOfReach(compute).empty()) Enqueue(compute, key, call);
}

void EngineCalls::Perform(Effects effects) {
  if (HoldBehindOthers(effects)) return;
  const absl::Status durable = state_.store->AwaitDurable(effects.after);
  if (durable.ok()) return HandOn(effects);
  NoteDurable(durable);
  absl::MutexLock lock(&mutex_);
  held_.push_back(std::move(effects));
}

bool EngineCalls::HoldBehindOthers(Effects& effects) {
  absl::MutexLock lock(&mutex_);
  if (held_.empty()) return false;
  held_.push_back(std::move(effects));
  return true;
}

// The first stays at its place until it is handed on, so that what others hand on meanwhile comes
// behind all of them.
bool EngineCalls::PerformHeld() {
  bool any = false;
  while (const Effects* const first = FirstHeld()) {
    any = true;
    if (const absl::Status durable = state_.store->AwaitDurable(first->after); !durable.ok()) {
      NoteDurable(durable);
      return false;
    }
    HandOn(*first);
    absl::MutexLock lock(&mutex_);
    held_.pop_front();
  }
  if (any) NoteDurable(absl::OkStatus());
  return true;
}

const Effects* EngineCalls::FirstHeld() const {
  absl::MutexLock lock(&mutex_);
  return held_.empty() ? nullptr : &held_.front();
}

void EngineCalls::NoteDurable(const absl::Status& status) {
  StateLock lock(state_);
  state_.problems.Note(kUnsynced, status);
}

bool EngineCalls::holds() const {
  absl::MutexLock lock(&mutex_);
  return !held_.empty();
}

void EngineCalls::HandOnPlans(const std::vector<Effects::Plan>& plans) {
  if (plans.empty()) return;
  const std::string own = state_.files.FolderOf("").native();
  const std::vector<base::Mount> mounts = base::ReadMounts();
  for (const Effects::Plan& plan : plans) {
    plan_turns_.Do(PlaceOfPlan(plan.pipeline, plan.inputs, own, mounts), plan.run);
  }
}

void EngineCalls::HandOn(const Effects& effects) {
  for (const Effects::Task& task : effects.tasks) state_.folder_work.Do(task.queue, task.run);
  HandOnPlans(effects.plans);
  for (const Effects::Task& task : effects.decisions) state_.decision_work.Do(task.queue, task.run);
  for (const auto& change : effects.cordons) state_.cordon_work.Do("cordons", change);
  for (const Effects::Task& task : effects.checks) state_.health_work.Do(task.queue, task.run);
  for (const Effects::Start& start : effects.starts) {
    Enact(start.compute, absl::StrCat("start ", start.allocation.id),
          [this, allocation = start.allocation](engine::Engine& engine) {
            Start(engine, allocation);
          });
  }
  for (const Effects::Stop& stop : effects.stops) {
    Enact(stop.at.compute,
          absl::StrCat(stop.patiently ? "stop patiently " : "stop ", stop.at.allocation),
          [this, stop](engine::Engine& engine) { Stop(engine, stop); });
  }
  for (const Effects::Kill& kill : effects.kills) {
    Enact(kill.at.compute, absl::StrCat("kill ", kill.at.allocation, " ", kill.node),
          [this, kill](engine::Engine& engine) { Kill(engine, kill); });
  }
  for (const AllocationAt& at : effects.releases) {
    Enact(at.compute, absl::StrCat("release ", at.allocation),
          [this, at](engine::Engine& engine) { Release(engine, at); });
  }
}

bool EngineCalls::Observe(const std::string& compute,
                          const std::function<void(const States&)>& then) {
  return Enqueue(compute, "observe", [then](engine::Engine& engine) { then(engine.Observe()); });
}

void EngineCalls::Refresh(const std::string& compute) {
  Enqueue(compute, "refresh", [](engine::Engine& engine) { engine.Refresh(); });
}

void EngineCalls::Start(engine::Engine& engine, const engine::Allocation& allocation) {
  if (!IsStillToStart(allocation.id)) return;
  const absl::Status status = engine.Start(allocation);
  NoteStart(allocation.id, status, WaitsForRoom(status));
}

// A node may have a disk of its own, and so may jobs.
bool EngineCalls::WaitsForRoom(const absl::Status& started) {
  if (!IsFullDisk(started)) return false;
  const std::string home = absl::StrCat(state_.options.directory.native(), "/");
  if (!absl::StrContains(started.message(), home)) return !state_.disk.Check().ok();
  const std::string jobs = state_.files.FolderOf("").native();
  DiskGauge& disk = absl::StrContains(started.message(), jobs) ? DiskOfJobs(state_) : state_.disk;
  disk.NoteWrite(started);  // nothing else tells of a quota
  return true;              // also where there is room again by now
}

bool EngineCalls::IsStillToStart(const std::string& allocation) {
  StateLock lock(state_);
  LiveJob* const job = table_.FindByAllocation(allocation);
  if (job == nullptr) return false;
  if (job->placed == nullptr) return true;
  return !job->placed->started && IsToBeStarted(*job);
}

void EngineCalls::Stop(engine::Engine& engine, const Effects::Stop& stop) {
  const AllocationAt& at = stop.at;
  const absl::Duration grace = state_.options.stop_grace;
  const absl::Status status = stop.patiently ? engine.StopPatiently(at.allocation, grace)
                                             : engine.Stop(at.allocation, grace);
  StateLock lock(state_);
  state_.problems.Note(absl::StrCat("allocation ", at.allocation, " cannot be stopped"), status,
                       {.at = at});
  const LiveJob* const job = table_.FindPlaced(at.allocation);
  if (job == nullptr || !status.ok()) return;
  if (stop.patiently && !MayStoreLong(*job)) return;  // it was canceled meanwhile
  job->placed->stopped = true;
  job->placed->stopped_at = state_.clock->SinceBoot();
}

void EngineCalls::Kill(engine::Engine& engine, const Effects::Kill& kill) {
  const absl::Status status = engine.Kill(kill.at.allocation, kill.node);
  StateLock lock(state_);
  state_.problems.Note(
      absl::StrCat("a launcher of allocation ", kill.at.allocation, " cannot be killed"), status,
      {.at = kill.at});
}

void EngineCalls::Release(engine::Engine& engine, const AllocationAt& at) {
  const absl::Status status = engine.Release(at.allocation);
  StateLock lock(state_);
  state_.problems.Note(absl::StrCat("allocation ", at.allocation, " cannot be released"), status,
                       {.at = at});
  if (!status.ok()) return;
  leaving_.Remove(at.allocation);
  state_.Wake();
}

// By then the job may have ended, and another have come under its name.
void EngineCalls::NoteStart(const std::string& allocation, const absl::Status& status, bool waits) {
  StateLock lock(state_);
  LiveJob* const job = table_.FindByAllocation(allocation);
  if (job == nullptr) return;
  const std::string& id = job->record.job.id;
  job->being_handed = false;
  if (job->placed == nullptr) {  // handed to a cluster
    job->handed_over = status.ok();
    if (!status.ok()) {
      job->waits_for = absl::StrCat(kCannotBeHanded, status.message());
      table_.HandOverAgain(*job);
    }
    NoteHandOver(*job, status);
    return;
  }
  PlacedJob& placed = *job->placed;
  if (waits) {  // the next look tries again
    placed.held_up = absl::StrCat("it waits to be started: ", status.message());
    placed.held_up_at = state_.clock->SinceBoot();
    return;
  }
  placed.started = true;
  placed.started_at = state_.clock->SinceBoot();
  if (status.ok()) return;
  spdlog::error("job {} cannot be started: {}", id, status.ToString());
  const bool begins = job->record.last.state == store::JobState::kProvisioning;
  for (int node = 0; begins && node < placed.gang.size(); ++node) {
    placed.gang.GiveUp(node, absl::StrCat("it could not be started: ", status.message()),
                       state_.clock->Now());
  }
  state_.Wake();
}

// A disk that all nodes share is the fault of no job.
void EngineCalls::NoteHandOver(const LiveJob& job, const absl::Status& status) {
  const std::string &id = job.record.job.id, &compute = job.record.job.spec.compute;
  const bool is_full = absl::IsResourceExhausted(status);
  const auto known = state_.full_disks.find(compute);
  if (is_full && known == state_.full_disks.end()) {
    state_.full_disks[compute] = {std::string(status.message()), state_.clock->SinceBoot()};
  } else if (is_full) {
    known->second.why = std::string(status.message());
  } else if (known != state_.full_disks.end()) {
    state_.full_disks.erase(known);
    state_.Wake();  // for the others
  }
  state_.problems.Note(absl::StrCat("compute ", compute, " takes no job"),
                       is_full ? status : absl::OkStatus(), {.job = id});
  state_.problems.Note(absl::StrCat("job ", id, " cannot be handed over"),
                       is_full ? absl::OkStatus() : status, {.job = id});
}

void EngineCalls::StartAtOnce(const std::string& id) {
  Effects effects;
  {
    StateLock lock(state_);
    const LiveJob* const job = table_.Find(id);
    if (job != nullptr && job->placed != nullptr) AddEffects(state_.options, *job, effects);
  }
  Perform(effects);
}

}  // namespace tutti::service
