#include "runtime/comm/negotiation/operation.h"

#include <utility>

namespace tutti::comm {

absl::Status Operation::Wait(base::Deadline deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!changed_.wait_until(lock, deadline.time_point(), [this] { return done_; })) {
    return absl::DeadlineExceededError("the operation is still in progress");
  }
  return status_;
}

bool Operation::Done() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return done_;
}

void Operation::WhenDone(std::function<void()> then) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!done_) {
      then_ = std::move(then);
      return;
    }
  }
  then();
}

void Operation::Finish(absl::Status status) {
  std::function<void()> then;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    status_ = std::move(status);
    done_ = true;
    then = std::exchange(then_, nullptr);
    changed_.notify_all();
  }
  if (then) then();
}

}  // namespace tutti::comm
