#include "runtime/comm/stream.h"

#include <utility>

namespace tutti::comm {

Stream::Stream(std::unique_ptr<Communicator> communicator)
    : communicator_(std::move(communicator)) {
  if (size() > 1) thread_ = std::thread([this] { Serve(); });
}

Stream::~Stream() {
  {
    const Lock lock(mutex_);
    closing_ = true;
  }
  issued_something_.notify_one();
  if (thread_.joinable()) thread_.join();
}

Stream::Ticket Stream::Issue(Collective collective) {
  const Lock lock(mutex_);
  const Ticket ticket = ++issued_;
  if (!status_.ok()) return ticket;
  if (size() == 1) {
    Conclude(collective(*communicator_));
  } else {
    queue_.push_back(std::move(collective));
    issued_something_.notify_one();
  }
  return ticket;
}

absl::Status Stream::Wait(Ticket ticket) {
  Lock lock(mutex_);
  concluded_.wait(lock, [&] { return Settled(ticket); });
  return done_ >= ticket ? absl::OkStatus() : status_;
}

bool Stream::Done(Ticket ticket) const {
  const Lock lock(mutex_);
  return Settled(ticket);
}

absl::Status Stream::status() const {
  const Lock lock(mutex_);
  return status_;
}

// With the mutex held.
void Stream::Conclude(absl::Status status) {
  if (status.ok()) {
    ++done_;
  } else {
    status_ = std::move(status);
    queue_.clear();
  }
  concluded_.notify_all();
}

void Stream::Serve() {
  Lock lock(mutex_);
  while (status_.ok()) {
    issued_something_.wait(lock, [this] { return closing_ || !queue_.empty(); });
    if (closing_) return;
    const Collective next = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    absl::Status status = next(*communicator_);
    lock.lock();
    Conclude(std::move(status));
  }
}

}  // namespace tutti::comm
