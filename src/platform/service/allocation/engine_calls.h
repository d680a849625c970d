// Carries out effects: the one place that has engines do something. Each compute has a queue of its
// own (SharedState::engine_work), on whose thread its engine is called, and what came of a call is
// noted under the lock before the next one begins: so what Observe says is never older than a start
// that has been noted. A call that is under way or waits is not asked for again.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "platform/service/allocation/leaving_allocations.h"

namespace tutti::service {

class EngineCalls {
 public:
  EngineCalls(SharedState& state, JobTable& table, LeavingAllocations& leaving)
      : state_(state), table_(table), leaving_(leaving) {}

  // Returns at once; without threads (WorkQueues::Start) once all is done.
  void Perform(const Effects& effects) ABSL_LOCKS_EXCLUDED(service_lock);
  // Starts the launchers of a job that has just got its nodes.
  void StartAtOnce(const std::string& id) ABSL_LOCKS_EXCLUDED(service_lock);
  // Has the engine of that compute looked at, and hands on what it says. False if a look is under
  // way already.
  using States = absl::StatusOr<std::vector<engine::AllocationState>>;
  bool Observe(const std::string& compute, const std::function<void(const States&)>& then)
      ABSL_LOCKS_EXCLUDED(service_lock);
  // Engine::Refresh; may be called under the lock.
  void Refresh(const std::string& compute);

 private:
  using Call = std::function<void(engine::Engine&)>;
  // False if a call of that key is under way or waits, or if there is no such compute.
  bool Enqueue(const std::string& compute, const std::string& key, const Call& call)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Start(engine::Engine& engine, const engine::Allocation& allocation)
      ABSL_LOCKS_EXCLUDED(service_lock);
  // Meanwhile the job may have been canceled, and its stop may have found nothing to end.
  bool IsStillToStart(const std::string& allocation) ABSL_LOCKS_EXCLUDED(service_lock);
  void Stop(engine::Engine& engine, const AllocationAt& at) ABSL_LOCKS_EXCLUDED(service_lock);
  void Kill(engine::Engine& engine, const Effects::Kill& kill) ABSL_LOCKS_EXCLUDED(service_lock);
  void Release(engine::Engine& engine, const AllocationAt& at) ABSL_LOCKS_EXCLUDED(service_lock);
  void NoteStart(const std::string& allocation, const absl::Status& status)
      ABSL_LOCKS_EXCLUDED(service_lock);

  SharedState& state_;
  JobTable& table_;
  LeavingAllocations& leaving_;
  absl::Mutex mutex_;  // may be taken under the service's
  // By compute, and what the call is.
  std::set<std::pair<std::string, std::string>> under_way_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tutti::service
