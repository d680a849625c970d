// Deadline is the point on the monotonic clock at which a wait gives up. Every function of tutti
// that can wait takes one; there is no wait without an end. Copyable, immutable, safe to share
// between threads.
#pragma once

#include <chrono>

#include "absl/time/time.h"

namespace tutti::base {

class Deadline {
 public:
  // Returns the deadline `duration` from now; a negative duration has expired already.
  static Deadline After(absl::Duration duration);
  // Returns the earlier of the two.
  static Deadline Sooner(Deadline a, Deadline b);

  bool Expired() const;
  // Returns the time that is left; never negative.
  absl::Duration Remaining() const;
  // Returns it for poll(2) and epoll_wait(2): whole milliseconds, rounded up, so that a wait never
  // spins.
  int RemainingMillis() const;
  std::chrono::steady_clock::time_point time_point() const { return at_; }

 private:
  explicit Deadline(std::chrono::steady_clock::time_point at) : at_(at) {}
  std::chrono::steady_clock::time_point at_;
};

// Returns the clock of deadlines, since a beginning that means nothing: only differences do.
absl::Duration SteadyNow();

}  // namespace tutti::base
