// ObservationSchedule decides how often the engines are asked what they see: about every
// ServiceOptions::observe_interval, sooner when a launcher is about to end, later when an answer
// takes long.
#pragma once

#include "absl/time/time.h"
#include "platform/service/allocation/leaving_allocations.h"

namespace tutti::service {

class ObservationSchedule {
 public:
  ObservationSchedule(const SharedState& state, const LeavingAllocations& leaving)
      : state_(state), leaving_(leaving) {}

  absl::Duration Interval() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  bool IsDue() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  void NoteObservation() ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock) {
    last_ = state_.clock->SinceBoot();
  }
  // Notes the processor time that an observation took, with what followed under the lock.
  void NoteWork(absl::Duration work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock) { work_ = work; }

 private:
  const SharedState& state_;
  const LeavingAllocations& leaving_;
  absl::Duration last_ ABSL_GUARDED_BY(service_lock) = -absl::InfiniteDuration();
  absl::Duration work_ ABSL_GUARDED_BY(service_lock);
};

}  // namespace tutti::service
