// A bell in memory that processes may share: no descriptor leads to it (it is a futex(2)). One
// sleeps there and anybody rings. A ring that meets nobody ends the next sleep. Zeros are a bell
// that has not been rung. Whoever else can write to the memory can wake the sleeper and no more.
//
// Who comes back from Await because of a ring sees what was done before it. So a ring is an
// exchange, not a store: of two rings the second would replace the first, and what came before the
// first would not be seen by the one who takes the second for both.
//
// The atomics and the system's calls are parameters so that bell_model_test.cc can run this very
// code through all that it can do.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/deadline.h"

namespace tutti::comm {

template <template <typename> class Atomic, typename Futex>
class alignas(64) BellOf {
 public:
  void Ring() {
    rung_.exchange(1, std::memory_order_release);
    Futex::Wake(rung_);
  }
  // Until it has been rung, and silences it. May end earlier, and does at the deadline. The system
  // looks at the word again before it lets this thread sleep: a ring since then ends it.
  void Await(base::Deadline deadline) {
    if (rung_.load(std::memory_order_relaxed) == 0) Futex::Wait(rung_, 0, deadline);
    rung_.exchange(0, std::memory_order_acquire);
  }

 private:
  Atomic<uint32_t> rung_{};
};

// The calls of Linux, on words that processes may share.
struct SharedFutex {
  static void Wait(std::atomic<uint32_t>& word, uint32_t value, base::Deadline deadline);
  static void Wake(std::atomic<uint32_t>& word);
};

using Bell = BellOf<std::atomic, SharedFutex>;
static_assert(std::atomic<uint32_t>::is_always_lock_free && sizeof(Bell) == 64);

}  // namespace tutti::comm
