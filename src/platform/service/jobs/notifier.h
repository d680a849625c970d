// Notifier wakes those who wait for news of a job: threads, and those who have left a function to
// be called. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/deadline.h"

namespace tutti::service {

class Notifier;

// As long as it lives its function is called. Once it is gone, no call of it is under way.
class Subscription {
 public:
  Subscription() = default;
  Subscription(std::shared_ptr<Notifier> notifier, int64_t number)
      : notifier_(std::move(notifier)), number_(number) {}
  Subscription(Subscription&& other) noexcept = default;
  Subscription& operator=(Subscription&& other) noexcept {
    std::swap(notifier_, other.notifier_);
    std::swap(number_, other.number_);
    return *this;
  }
  inline ~Subscription();

 private:
  std::shared_ptr<Notifier> notifier_;
  int64_t number_ = 0;
};

class Notifier : public std::enable_shared_from_this<Notifier> {
 public:
  void Notify() {
    absl::MutexLock lock(&mutex_);
    ++count_;
    changed_.SignalAll();
    for (const auto& [number, wake] : subscribers_) wake();
  }
  // Subscribes: `wake` is called at each Notify; with locks held, so that it may not do more than
  // wake somebody.
  Subscription Subscribe(std::function<void()> wake) {
    absl::MutexLock lock(&mutex_);
    subscribers_[++last_] = std::move(wake);
    return {shared_from_this(), last_};
  }
  // Returns how often Notify was called.
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
  friend class Subscription;
  void Unsubscribe(int64_t number) {
    absl::MutexLock lock(&mutex_);
    subscribers_.erase(number);
  }

  mutable absl::Mutex mutex_;
  absl::CondVar changed_;
  int64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<int64_t, std::function<void()>> subscribers_ ABSL_GUARDED_BY(mutex_);
};

Subscription::~Subscription() {
  if (notifier_ != nullptr) notifier_->Unsubscribe(number_);
}

}  // namespace tutti::service
