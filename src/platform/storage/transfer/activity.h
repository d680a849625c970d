// Tells a store that is silent from work that goes on: a fetch that hashes what is there already, a
// slow disk and a list of many pages end no call of a store for minutes.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"

namespace tutti::storage {

// Activity is what a request does. Thread-safe.
class Activity {
 public:
  // Notes that something was done: a call has ended, a block was hashed.
  void Note() { ++steps_; }
  int64_t steps() const { return steps_; }

  // While one lives, this machine's disk is waited for and not the store.
  class OnDisk {
   public:
    // `activity` may be null.
    explicit OnDisk(Activity* activity) : activity_(activity) {
      if (activity_ != nullptr) ++activity_->on_disk_;
    }
    ~OnDisk() {
      if (activity_ != nullptr) --activity_->on_disk_;
    }
    OnDisk(const OnDisk&) = delete;
    OnDisk& operator=(const OnDisk&) = delete;

   private:
    Activity* const activity_;
  };
  bool is_on_disk() const { return on_disk_ > 0; }

 private:
  std::atomic<int64_t> steps_ = 0;
  std::atomic<int> on_disk_ = 0;
};

// Counts how long a store has been silent: no step was noted, no byte came or went, and no disk was
// waited for. Not thread-safe.
class SilenceWatch {
 public:
  // `activity` outlives it; `now` of any clock that goes forward.
  SilenceWatch(const Activity& activity, absl::Duration now) : activity_(activity), since_(now) {}

  // Looks, and returns how long the silence has lasted. `bytes`: BytesOfConnections().
  absl::Duration Look(int64_t bytes, absl::Duration now);

 private:
  const Activity& activity_;
  absl::Duration since_;
  int64_t steps_ = 0, bytes_ = 0;
};

// Returns the bytes that this process's open TCP connections have received and that others have
// acknowledged. It changes with each page of a list, which the providers' libraries do not tell of.
int64_t BytesOfConnections();

}  // namespace tutti::storage
