#include "runtime/parallel/collective_lane.h"

#include <utility>

namespace tutti::parallel {

CollectiveLane::CollectiveLane(std::unique_ptr<comm::Communicator> communicator)
    : communicator_(std::move(communicator)) {
  if (size() > 1) thread_ = std::thread([this] { Serve(); });
}

CollectiveLane::~CollectiveLane() {
  {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

int64_t CollectiveLane::Issue(Collective collective) {
  absl::MutexLock lock(&mutex_);
  if (size() > 1 && status_.ok()) queue_.push_back(std::move(collective));
  return ++issued_;
}

absl::Status CollectiveLane::Wait(int64_t ticket, base::Deadline deadline) {
  if (size() == 1) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  const auto settled = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return done_ >= ticket || !status_.ok();
  };
  if (!mutex_.AwaitWithTimeout(absl::Condition(&settled), deadline.Remaining())) {
    return absl::DeadlineExceededError("a collective did not finish in time");
  }
  return status_;
}

absl::Status CollectiveLane::status() const {
  absl::MutexLock lock(&mutex_);
  return status_;
}

void CollectiveLane::Serve() {
  const auto due = [this]()
                       ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return closing_ || !queue_.empty(); };
  while (true) {
    Collective next;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&due));
      if (closing_) return;
      next = std::move(queue_.front());
      queue_.pop_front();
    }
    absl::Status status = next(*communicator_);
    absl::MutexLock lock(&mutex_);
    ++done_;
    if (!status.ok()) {
      status_ = std::move(status);
      queue_.clear();
      return;
    }
  }
}

}  // namespace tutti::parallel
