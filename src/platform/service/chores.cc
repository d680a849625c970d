#include "platform/service/chores.h"

namespace tutti::service {

void Chores::Start() {
  absl::MutexLock lock(&mutex_);
  started_ = true;
  thread_ = std::thread([this] { Work(); });
}

void Chores::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
}

void Chores::Do(std::function<void()> chore) {
  {
    absl::MutexLock lock(&mutex_);
    if (stopping_) return;
    if (started_) {
      waiting_.push_back(std::move(chore));
      changed_.Signal();
      return;
    }
  }
  chore();
}

void Chores::Work() {
  while (true) {
    std::function<void()> chore;
    {
      absl::MutexLock lock(&mutex_);
      while (waiting_.empty() && !stopping_) changed_.Wait(&mutex_);
      if (stopping_) return;
      chore = std::move(waiting_.front());
      waiting_.pop_front();
    }
    chore();
  }
}

}  // namespace tutti::service
