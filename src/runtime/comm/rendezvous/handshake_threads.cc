#include "runtime/comm/rendezvous/handshake_threads.h"

#include <system_error>
#include <utility>

namespace tutti::comm {

HandshakeThreads::HandshakeThreads(size_t most, std::function<void()> when_over)
    : most_(most), when_over_(std::move(when_over)) {}

bool HandshakeThreads::full() const {
  const std::lock_guard lock(mutex_);
  return threads_.size() - over_.size() >= most_;
}

bool HandshakeThreads::Begin(base::UniqueFd socket,
                             std::function<void(base::UniqueFd socket)> hear) {
  const std::lock_guard lock(mutex_);
  JoinThoseThatAreOver();
  if (threads_.size() >= most_) return false;
  const uint64_t number = next_++;
  try {
    threads_[number] = std::thread([this, number, hear = std::move(hear), fd = socket.get()] {
      hear(base::UniqueFd(fd));
      {
        const std::lock_guard lock(mutex_);
        over_.push_back(number);
      }
      when_over_();
    });
  } catch (const std::system_error&) {
    threads_.erase(number);
    return false;
  }
  socket.release();  // the thread has it
  return true;
}

void HandshakeThreads::JoinThoseThatAreOver() {
  for (const uint64_t number : std::exchange(over_, {})) {
    threads_[number].join();
    threads_.erase(number);
  }
}

void HandshakeThreads::AwaitAll() {
  std::map<uint64_t, std::thread> threads;
  {
    const std::lock_guard lock(mutex_);
    threads.swap(threads_);
    over_.clear();
  }
  for (auto& [number, thread] : threads) thread.join();
}

}  // namespace tutti::comm
