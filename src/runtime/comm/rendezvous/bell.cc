#include "runtime/comm/rendezvous/bell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "absl/time/time.h"

namespace tutti::comm {

void Bell::Ring() {
  rung_.store(1, std::memory_order_seq_cst);
  ::syscall(SYS_futex, &rung_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// The system looks at the word again before it lets this thread sleep: a ring since then ends it.
void Bell::Await(base::Deadline deadline) {
  const timespec longest =
      absl::ToTimespec(std::min<absl::Duration>(deadline.Remaining(), absl::Hours(1)));
  if (rung_.load(std::memory_order_seq_cst) == 0) {
    ::syscall(SYS_futex, &rung_, FUTEX_WAIT, 0, &longest, nullptr, 0);
  }
  rung_.exchange(0, std::memory_order_seq_cst);
}

}  // namespace tutti::comm
