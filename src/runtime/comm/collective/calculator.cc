#include "runtime/comm/collective/calculator.h"

#include <utility>

namespace tutti::comm {

Calculator::~Calculator() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Calculator::Begin(std::function<void()> work) {
  if (!thread_.joinable()) thread_ = std::thread([this] { Serve(); });
  {
    const std::lock_guard lock(mutex_);
    work_ = std::move(work);
  }
  changed_.notify_all();
}

void Calculator::Finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return work_ == nullptr; });
}

void Calculator::Serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return work_ != nullptr || closing_; });
    if (work_ == nullptr) return;
    lock.unlock();
    work_();
    lock.lock();
    work_ = nullptr;
    changed_.notify_all();
  }
}

}  // namespace tutti::comm
