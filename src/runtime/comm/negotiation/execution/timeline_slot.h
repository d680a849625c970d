// TimelineSlot holds the recording that goes on, if one does. Thread-safe; costs one load while
// none does.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include "runtime/comm/negotiation/execution/tensor_timeline.h"

namespace tutti::comm {

class TimelineSlot {
 public:
  std::shared_ptr<Timeline> get() const {
    if (!on_.load(std::memory_order_acquire)) return nullptr;
    const std::lock_guard<std::mutex> lock(mutex_);
    return timeline_;
  }
  // Returns the one before, for the caller to end.
  std::shared_ptr<Timeline> Set(std::shared_ptr<Timeline> timeline) {
    const std::lock_guard<std::mutex> lock(mutex_);
    on_.store(timeline != nullptr, std::memory_order_release);
    return std::exchange(timeline_, std::move(timeline));
  }

 private:
  std::atomic<bool> on_ = false;
  mutable std::mutex mutex_;
  std::shared_ptr<Timeline> timeline_;
};

}  // namespace tutti::comm
