// Calls a store again after what may pass: a network that is away, a store that is too busy.
// Thread-safe.
#pragma once

#include <atomic>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/threads/retry_pause.h"
#include "platform/storage/storage_fault.h"
#include "platform/storage/transfer/activity.h"

namespace tutti::storage {

struct Attempts {
  int most = 5;  // beside the tries that the provider's library makes of its own
  absl::Duration first_pause = absl::Milliseconds(500);  // as base::RetryPause has them
  absl::Duration longest_pause = absl::Seconds(30);
  std::function<void(absl::Duration)> sleep = absl::SleepFor;
  Activity* activity = nullptr;                  // is told of each call that has ended; may be null
  const std::atomic<bool>* cancelled = nullptr;  // may be null

  // Cancelled once `cancelled` is set.
  absl::Status CheckGoesOn() const {
    return cancelled != nullptr && *cancelled ? absl::CancelledError("told to end")
                                              : absl::OkStatus();
  }

  // Calls `work` until it returns anything but Unavailable, at most `most` times.
  template <typename Work>
  auto Run(const Work& work) const -> decltype(work()) {
    base::RetryPause pause(first_pause, longest_pause);
    for (int attempt = 1;; ++attempt) {
      auto result = work();
      if (activity != nullptr) activity->Note();
      if (attempt >= most || !absl::IsUnavailable(StatusOf(result))) return result;
      if (absl::Status goes_on = CheckGoesOn(); !goes_on.ok()) return goes_on;
      sleep(pause.Next());
    }
  }

 private:
  static const absl::Status& StatusOf(const absl::Status& status) { return status; }
  template <typename Value>
  static const absl::Status& StatusOf(const absl::StatusOr<Value>& result) {
    return result.status();
  }
};

}  // namespace tutti::storage
