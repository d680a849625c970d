// EngineCalls carries out Effects; it alone makes engines do something. Each compute has a queue of
// its own (SharedState::engine_work), on whose thread its engine is called, and what came of a call
// is noted under the lock before the next one begins: so what Observe says is never older than a
// start that has been noted. A call that is under way or waits is not asked for again. What the
// store cannot get onto the disk has no effects until it can.
#pragma once

#include <deque>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "platform/service/allocation/leaving_allocations.h"
#include "platform/service/allocation/plan_turns.h"

namespace tutti::service {

// A job whose cluster could not be told of it says so in words that begin like this; the error
// follows.
inline constexpr char kCannotBeHanded[] = "waits: ";

class EngineCalls {
 public:
  EngineCalls(SharedState& state, JobTable& table, LeavingAllocations& leaving)
      : state_(state), table_(table), leaving_(leaving), plan_turns_(&state.plan_work) {}

  // Waits for the store to have on the disk what they follow from, and then hands them on; without
  // threads (WorkQueues::Start) it returns once all is done. If the disk fails they are held, and
  // those that come later behind them.
  void Perform(Effects effects) ABSL_LOCKS_EXCLUDED(service_lock);
  // Tries again those that are held, in their order. False if some are still. By one thread at a
  // time.
  bool PerformHeld() ABSL_LOCKS_EXCLUDED(service_lock);
  bool holds() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Starts the launchers of a job that has just got its nodes.
  void StartAtOnce(const std::string& id) ABSL_LOCKS_EXCLUDED(service_lock);
  // Has the engine of that compute looked at, and hands on what it says. False if a look is under
  // way already.
  using States = absl::StatusOr<std::vector<engine::AllocationState>>;
  bool Observe(const std::string& compute, const std::function<void(const States&)>& then)
      ABSL_LOCKS_EXCLUDED(service_lock);
  // Calls Engine::Refresh; may be called under the lock.
  void Refresh(const std::string& compute);

 private:
  using Call = std::function<void(engine::Engine&)>;
  // Holds the effects behind others; false if no others are held.
  bool HoldBehindOthers(Effects& effects) ABSL_LOCKS_EXCLUDED(mutex_);
  // Stays where it is until PerformHeld removes it; null: none are held.
  const Effects* FirstHeld() const ABSL_LOCKS_EXCLUDED(mutex_);
  void NoteDurable(const absl::Status& status) ABSL_LOCKS_EXCLUDED(service_lock);
  void HandOn(const Effects& effects);
  void HandOnPlans(const std::vector<Effects::Plan>& plans);
  // Adds a call; false if a call of that key is under way or waits, or if there is no such compute.
  bool Enqueue(const std::string& compute, const std::string& key, const Call& call)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Does the same of an effect. None goes to an engine that is out of reach: what it has not done
  // is asked for again.
  void Enact(const std::string& compute, const std::string& key, const Call& call)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Start(engine::Engine& engine, const engine::Allocation& allocation)
      ABSL_LOCKS_EXCLUDED(service_lock);
  // Returns whether that is what a full disk of this service, or a quota there, makes of a start.
  bool WaitsForRoom(const absl::Status& started);
  // Returns whether it is still to start: meanwhile the job may have been canceled, and its stop
  // may have found nothing to end.
  bool IsStillToStart(const std::string& allocation) ABSL_LOCKS_EXCLUDED(service_lock);
  void Stop(engine::Engine& engine, const Effects::Stop& stop) ABSL_LOCKS_EXCLUDED(service_lock);
  void Kill(engine::Engine& engine, const Effects::Kill& kill) ABSL_LOCKS_EXCLUDED(service_lock);
  void Release(engine::Engine& engine, const AllocationAt& at) ABSL_LOCKS_EXCLUDED(service_lock);
  // `waits`: it is tried again, for the disk of this service is full.
  void NoteStart(const std::string& allocation, const absl::Status& status, bool waits)
      ABSL_LOCKS_EXCLUDED(service_lock);
  void NoteHandOver(const LiveJob& job, const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

  SharedState& state_;
  JobTable& table_;
  LeavingAllocations& leaving_;
  PlanTurns plan_turns_;
  mutable absl::Mutex mutex_;  // may be taken under the service's
  // The calls that are under way, by compute and by what the call is.
  std::set<std::pair<std::string, std::string>> under_way_ ABSL_GUARDED_BY(mutex_);
  std::deque<Effects> held_ ABSL_GUARDED_BY(mutex_);  // in the order of Perform
};

}  // namespace tutti::service
