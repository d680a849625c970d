// Clock gives the time to code whose decisions depend on it, so that tests can set it: SystemClock
// in programs, ManualClock in tests.
#pragma once

#include <time.h>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace tutti::base {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Now() const = 0;  // by the wall, whose clock may be set
  // Returns the time since boot, by the clock that nobody sets and that goes on while the machine
  // sleeps.
  virtual absl::Duration SinceBoot() const = 0;
};

class SystemClock final : public Clock {
 public:
  absl::Time Now() const override { return absl::Now(); }
  absl::Duration SinceBoot() const override {
    timespec time = {};
    ::clock_gettime(CLOCK_BOOTTIME, &time);
    return absl::DurationFromTimespec(time);
  }
};

// Stands still until the test moves it.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(absl::Time start = absl::UnixEpoch()) : now_(start) {}
  absl::Time Now() const override {
    absl::MutexLock lock(&mutex_);
    return now_;
  }
  absl::Duration SinceBoot() const override {
    absl::MutexLock lock(&mutex_);
    return since_boot_;
  }
  void Advance(absl::Duration by) {
    absl::MutexLock lock(&mutex_);
    now_ += by;
    since_boot_ += by;
  }
  // Sets the wall's clock, as somebody might.
  void Set(absl::Time now) {
    absl::MutexLock lock(&mutex_);
    now_ = now;
  }

 private:
  mutable absl::Mutex mutex_;
  absl::Time now_;
  absl::Duration since_boot_ = absl::Hours(1);
};

}  // namespace tutti::base
