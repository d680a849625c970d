// Carries out effects: the one place that has engines do something. It holds no lock while an
// engine works; what came of a call is noted under the lock afterwards.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "platform/service/allocation/background_tasks.h"
#include "platform/service/allocation/leaving_allocations.h"

namespace tutti::service {

class EngineCalls {
 public:
  EngineCalls(SharedState& state, JobTable& table, LeavingAllocations& leaving,
              BackgroundTasks& background)
      : state_(state), table_(table), leaving_(leaving), background_(background) {}

  void Perform(const Effects& effects) ABSL_LOCKS_EXCLUDED(service_lock);
  // Starts the launchers of a job that has just got its nodes, unless a tick is at work, which does
  // it then.
  void StartAtOnce(const std::string& id) ABSL_LOCKS_EXCLUDED(service_lock);

 private:
  void Stop(engine::Engine& engine, const AllocationAt& at) ABSL_LOCKS_EXCLUDED(service_lock);
  void Kill(engine::Engine& engine, const Effects::Kill& kill) ABSL_LOCKS_EXCLUDED(service_lock);
  void Release(engine::Engine& engine, const AllocationAt& at) ABSL_LOCKS_EXCLUDED(service_lock);
  void NoteStart(const std::string& allocation, const absl::Status& status)
      ABSL_LOCKS_EXCLUDED(service_lock);

  SharedState& state_;
  JobTable& table_;
  LeavingAllocations& leaving_;
  BackgroundTasks& background_;
};

}  // namespace tutti::service
