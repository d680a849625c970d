// HandshakeThreads hears the first words of connections, each on a thread of its own, so that a
// stranger that connects and says nothing holds nobody up. There are only so many at once, and one
// that is over leaves nothing behind.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "base/unique_fd.h"

namespace tutti::comm {

// How long a listener rests when the system has no descriptors left: strangers may hold them all.
inline constexpr absl::Duration kListenerRest = absl::Milliseconds(50);

class HandshakeThreads {
 public:
  // `when_over` is called after each, on its thread.
  HandshakeThreads(size_t most, std::function<void()> when_over);
  ~HandshakeThreads() { AwaitAll(); }

  bool full() const;
  // Begins a handshake; false when there are too many or the system gives no thread: then the
  // connection is closed.
  bool Begin(base::UniqueFd socket, std::function<void(base::UniqueFd socket)> hear);
  // Whoever calls it has made them end, and begins no other.
  void AwaitAll();

 private:
  void JoinThoseThatAreOver();  // with the mutex held, which no thread needs once it is over

  const size_t most_;
  const std::function<void()> when_over_;
  mutable std::mutex mutex_;  // guards what follows
  uint64_t next_ = 0;
  std::map<uint64_t, std::thread> threads_;
  std::vector<uint64_t> over_;
};

}  // namespace tutti::comm
