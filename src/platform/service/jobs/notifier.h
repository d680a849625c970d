// Wakes those who wait for news of a job. Thread-safe.
#pragma once

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/deadline.h"

namespace tutti::service {

class Notifier {
 public:
  void Notify() {
    absl::MutexLock lock(&mutex_);
    ++count_;
    changed_.SignalAll();
  }
  // How often Notify was called.
  int64_t count() const {
    absl::MutexLock lock(&mutex_);
    return count_;
  }
  // Waits until the count is above `seen`, or the deadline.
  void WaitPast(int64_t seen, base::Deadline deadline) {
    absl::MutexLock lock(&mutex_);
    while (count_ <= seen && !deadline.Expired()) {
      changed_.WaitWithTimeout(&mutex_, deadline.Remaining());
    }
  }

 private:
  mutable absl::Mutex mutex_;
  absl::CondVar changed_;
  int64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tutti::service
