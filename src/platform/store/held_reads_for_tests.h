// HeldReads holds connections of a store that read, as users' reads of much do, for tests.
#pragma once

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"

namespace tutti::store {

// The reads of the threads of Begin do not end before End. Others read as ever.
class HeldReads {
 public:
  // Ends, too.
  ~HeldReads() { End(); }

  // For StoreOptions::on_read.
  void Hold() {
    if (!is_held) return;
    ++held_;
    until_.WaitForNotification();
  }
  // Has a thread of its own read.
  void Begin(const std::function<void()>& read) {
    threads_.emplace_back([read] {
      is_held = true;
      read();
    });
  }
  // Returns how many have a connection.
  int held() const { return held_; }
  void End() {
    if (!until_.HasBeenNotified()) until_.Notify();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  static inline thread_local bool is_held = false;
  std::atomic<int> held_ = 0;
  absl::Notification until_;
  std::vector<std::thread> threads_;
};

}  // namespace tutti::store
