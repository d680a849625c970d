// RetryPause tells how long to wait before the next attempt: twice as long each time, up to a
// limit, and by chance up to half of that less, so that not all whom a service left come back to it
// at once. What the service asks for (retry_after.h) counts where it is longer. Not thread-safe.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <random>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace tutti::base {

class RetryPause {
 public:
  RetryPause(absl::Duration first, absl::Duration longest)
      : first_(first), longest_(longest), next_(first) {}

  // `told`: how long the service asks to be left alone; by chance up to a quarter more is waited,
  // since it tells all the same.
  absl::Duration Next(absl::Duration told = absl::ZeroDuration()) {
    const absl::Duration whole = next_;
    next_ = std::min(2 * whole, longest_);
    const absl::Duration own = whole * std::uniform_real_distribution<double>(0.5, 1)(chance_);
    if (own >= told) return own;
    return told * std::uniform_real_distribution<double>(1, 1.25)(chance_);
  }

  // After a success: begins anew.
  void Reset() { next_ = first_; }

 private:
  const absl::Duration first_, longest_;
  absl::Duration next_;
  std::minstd_rand chance_{std::random_device{}()};
};

// Waits that long, but not once it is cancelled (looked at 20 times a second). `sleep`: what tests
// have in its place. Thread-safe.
inline void PauseUnlessCancelled(
    absl::Duration pause, const std::atomic<bool>& cancelled,
    const std::function<void(absl::Duration)>& sleep = absl::SleepFor) {
  constexpr absl::Duration kLook = absl::Milliseconds(50);
  for (; pause > absl::ZeroDuration() && !cancelled; pause -= kLook) sleep(std::min(pause, kLook));
}

}  // namespace tutti::base
