#include "runtime/comm/negotiation/execution/operation.h"

#include <utility>

#include "runtime/comm/communicator.h"
#include "runtime/comm/lost_rank.h"

namespace tutti::comm {
namespace {

// With memory of its own: one error ends many operations, whose waiters are threads that nothing
// else orders, and ThreadSanitizer does not see the reference counts of Debian's Abseil.
absl::Status Fresh(const absl::Status& status) {
  const auto lost = LostRank(status);
  if (lost.has_value()) return ErrorAboutRank(*lost, status.code(), status.message());
  return absl::Status(status.code(), status.message());
}

}  // namespace

absl::Status Operation::Wait(base::Deadline deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!changed_.wait_until(lock, deadline.time_point(), [this] { return done_; })) {
    return absl::DeadlineExceededError("the operation is still in progress");
  }
  return Fresh(status_);
}

absl::StatusOr<std::shared_ptr<const DeviceEvent>> Operation::WaitIssued(base::Deadline deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!changed_.wait_until(lock, deadline.time_point(),
                           [this] { return done_ || mark_ != nullptr; })) {
    return absl::DeadlineExceededError("the operation is still in progress");
  }
  if (done_ && !status_.ok()) return Fresh(status_);
  return mark_;
}

void Operation::Issue(std::shared_ptr<const DeviceEvent> mark) {
  const std::lock_guard<std::mutex> lock(mutex_);
  mark_ = std::move(mark);
  changed_.notify_all();
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

void Operation::Finish(const absl::Status& status) {
  if (const auto then = Settle(status)) then();
}

std::function<void()> Operation::Settle(const absl::Status& status) {
  const std::lock_guard<std::mutex> lock(mutex_);
  status_ = Fresh(status);
  done_ = true;
  changed_.notify_all();
  return std::exchange(then_, nullptr);
}

}  // namespace tutti::comm
