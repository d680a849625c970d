// A bell in memory that processes may share: no descriptor leads to it (it is a futex(2)). One
// sleeps there and anybody rings. A ring that meets nobody ends the next sleep. Zeros are a bell
// that has not been rung. Whoever else can write to the memory can wake the sleeper and no more.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/deadline.h"

namespace tutti::comm {

class alignas(64) Bell {
 public:
  void Ring();
  // Until it has been rung, and silences it. May end earlier, and does at the deadline.
  void Await(base::Deadline deadline);

 private:
  std::atomic<uint32_t> rung_ = 0;
};
static_assert(std::atomic<uint32_t>::is_always_lock_free && sizeof(Bell) == 64);

}  // namespace tutti::comm
