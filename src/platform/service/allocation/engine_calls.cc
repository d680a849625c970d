#include "platform/service/allocation/engine_calls.h"

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"

namespace tutti::service {

void EngineCalls::Perform(const Effects& effects) {
  for (const auto& task : effects.tasks) background_.Do(task);
  for (const Effects::Start& start : effects.starts) {
    engine::Engine* const engine = state_.engines.Of(start.compute);
    if (engine != nullptr) NoteStart(start.allocation.id, engine->Start(start.allocation));
  }
  for (const AllocationAt& at : effects.stops) {
    engine::Engine* const engine = state_.engines.Of(at.compute);
    if (engine != nullptr) Stop(*engine, at);
  }
  for (const Effects::Kill& kill : effects.kills) {
    engine::Engine* const engine = state_.engines.Of(kill.at.compute);
    if (engine != nullptr) Kill(*engine, kill);
  }
  for (const AllocationAt& at : effects.releases) {
    engine::Engine* const engine = state_.engines.Of(at.compute);
    if (engine != nullptr) Release(*engine, at);
  }
}

void EngineCalls::Stop(engine::Engine& engine, const AllocationAt& at) {
  const absl::Status status = engine.Stop(at.allocation, state_.options.stop_grace);
  StateLock lock(state_);
  state_.problems.Note(absl::StrCat("allocation ", at.allocation, " cannot be stopped"), status,
                       {.at = at});
  const LiveJob* const job = table_.FindPlaced(at.allocation);
  if (job == nullptr || !status.ok()) return;
  job->placed->stopped = true;
  job->placed->stopped_at = state_.clock->Now();
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
void EngineCalls::NoteStart(const std::string& allocation, const absl::Status& status) {
  StateLock lock(state_);
  LiveJob* const job = table_.FindByAllocation(allocation);
  if (job == nullptr) return;
  const std::string& id = job->record.job.id;
  if (job->placed == nullptr) {  // handed to a cluster
    job->handed_over = status.ok();
    state_.problems.Note(absl::StrCat("job ", id, " cannot be handed over"), status, {.job = id});
    return;
  }
  PlacedJob& placed = *job->placed;
  placed.started = true;
  placed.started_at = state_.clock->Now();
  if (status.ok()) return;
  spdlog::error("job {} cannot be started: {}", id, status.ToString());
  const bool begins = job->record.last.state == store::JobState::kProvisioning;
  for (int node = 0; begins && node < placed.gang.size(); ++node) {
    placed.gang.GiveUp(node, absl::StrCat("it could not be started: ", status.message()),
                       placed.started_at);
  }
  state_.Wake();
}

// By this thread, since the loop would have to be woken.
void EngineCalls::StartAtOnce(const std::string& id) {
  if (!state_.tick_mutex.TryLock()) return;
  Effects effects;
  {
    StateLock lock(state_);
    const LiveJob* const job = table_.Find(id);
    if (job != nullptr && job->placed != nullptr) AddEffects(state_.options, *job, effects);
  }
  Perform(effects);
  state_.tick_mutex.Unlock();
}

}  // namespace tutti::service
