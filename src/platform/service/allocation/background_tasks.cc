#include "platform/service/allocation/background_tasks.h"

namespace tutti::service {

void BackgroundTasks::Start() {
  absl::MutexLock lock(&mutex_);
  started_ = true;
  thread_ = std::thread([this] { Work(); });
}

void BackgroundTasks::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
}

void BackgroundTasks::Do(std::function<void()> task) {
  {
    absl::MutexLock lock(&mutex_);
    if (stopping_) return;
    if (started_) {
      waiting_.push_back(std::move(task));
      changed_.Signal();
      return;
    }
  }
  task();
}

void BackgroundTasks::Work() {
  while (true) {
    std::function<void()> task;
    {
      absl::MutexLock lock(&mutex_);
      while (waiting_.empty() && !stopping_) changed_.Wait(&mutex_);
      if (stopping_) return;
      task = std::move(waiting_.front());
      waiting_.pop_front();
    }
    task();
  }
}

}  // namespace tutti::service
