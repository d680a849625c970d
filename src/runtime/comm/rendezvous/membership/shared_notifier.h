// Notifier lies in memory that processes may share, and needs no descriptor (it is a futex(2)). One
// thread waits for it and any other notifies it. A notification that meets nobody ends the next
// wait. Zeros are a notifier that has not been notified. Whoever else can write to the memory can
// wake the one that waits, and no more.
//
// Who comes back from Await because of a notification sees what was done before it. So Notify is an
// exchange, not a store: of two the second would replace the first, and what came before the
// first would not be seen by the one who takes the second for both.
//
// The atomics and the system's calls are parameters so that notifier_model_test.cc can run this
// very code through all that it can do.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/deadline.h"

namespace tutti::comm {

template <template <typename> class Atomic, typename Futex>
class alignas(64) NotifierOf {
 public:
  void Notify() {
    notified_.exchange(1, std::memory_order_release);
    Futex::Wake(notified_);
  }
  // Waits until it has been notified, and resets it. May end earlier, and does at the deadline. The
  // system looks at the word again before it lets this thread sleep: a Notify since then ends it.
  void Await(base::Deadline deadline) {
    if (notified_.load(std::memory_order_relaxed) == 0) Futex::Wait(notified_, 0, deadline);
    notified_.exchange(0, std::memory_order_acquire);
  }

 private:
  Atomic<uint32_t> notified_{};
};

// The calls of Linux, on words that processes may share.
struct SharedFutex {
  static void Wait(std::atomic<uint32_t>& word, uint32_t value, base::Deadline deadline);
  static void Wake(std::atomic<uint32_t>& word);
};

using Notifier = NotifierOf<std::atomic, SharedFutex>;
static_assert(std::atomic<uint32_t>::is_always_lock_free && sizeof(Notifier) == 64);

}  // namespace tutti::comm
