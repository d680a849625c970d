#include "runtime/comm/negotiation/execution/callbacks.h"

#include <utility>

namespace tutti::comm {

Callbacks::Callbacks() : thread_([this] { Serve(); }) {}

void Callbacks::Add(std::function<void()> callback) {
  const std::lock_guard<std::mutex> lock(mutex_);
  queue_.push_back(std::move(callback));
  changed_.notify_all();
}

void Callbacks::Close() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closing_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Callbacks::Serve() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return closing_ || !queue_.empty(); });
    if (queue_.empty()) return;
    std::function<void()> callback = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    callback();
    callback = nullptr;  // what it holds goes without the lock
    lock.lock();
  }
}

}  // namespace tutti::comm
