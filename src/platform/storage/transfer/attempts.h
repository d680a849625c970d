// Calls a store again after what may pass: a network that is away, a store that is too busy. What a
// store asks for (base/threads/retry_after.h) counts where it is longer than the own pause.
// Thread-safe.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/threads/retry_after.h"
#include "base/threads/retry_pause.h"
#include "platform/storage/storage_fault.h"
#include "platform/storage/transfer/activity.h"

namespace tutti::storage {

struct Attempts {
  int most = 5;  // beside the tries that the provider's library makes of its own
  absl::Duration first_pause = absl::Milliseconds(500);  // as base::RetryPause has them
  absl::Duration longest_pause = absl::Seconds(30);
  absl::Duration longest_told = absl::Seconds(30);  // what the store asks for counts so far
  bool returns_longer = false;  // if it asks for more: who calls leaves the store alone so long
  std::function<void(absl::Duration)> sleep = absl::SleepFor;
  Activity* activity = nullptr;                  // is told of each call that has ended; may be null
  const std::atomic<bool>* cancelled = nullptr;  // ends a pause, too; may be null

  // Cancelled once `cancelled` is set.
  absl::Status CheckGoesOn() const {
    return cancelled != nullptr && *cancelled ? absl::CancelledError("told to end")
                                              : absl::OkStatus();
  }

  // Calls `work` until it returns anything but Unavailable, at most `most` times.
  template <typename Work>
  auto Run(const Work& work) const -> decltype(work()) {
    std::optional<base::RetryPause> pause;  // made once it is needed: it draws from the system
    for (int attempt = 1;; ++attempt) {
      auto result = work();
      if (activity != nullptr) activity->Note();
      if (attempt >= most || !absl::IsUnavailable(StatusOf(result))) return result;
      const absl::Duration told = base::RetryAfterOf(StatusOf(result));
      if (returns_longer && told > longest_told) return result;
      if (!pause) pause.emplace(first_pause, longest_pause);
      Pause(pause->Next(std::min(told, longest_told)));
      if (absl::Status goes_on = CheckGoesOn(); !goes_on.ok()) return goes_on;
    }
  }

 private:
  void Pause(absl::Duration pause) const {
    if (cancelled == nullptr) return sleep(pause);
    base::PauseUnlessCancelled(pause, *cancelled, sleep);
  }
  static const absl::Status& StatusOf(const absl::Status& status) { return status; }
  template <typename Value>
  static const absl::Status& StatusOf(const absl::StatusOr<Value>& result) {
    return result.status();
  }
};

}  // namespace tutti::storage
