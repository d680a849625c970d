#include "runtime/comm/rendezvous/membership/shared_notifier.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "absl/time/time.h"

namespace tutti::comm {

void SharedFutex::Wait(std::atomic<uint32_t>& word, uint32_t value, base::Deadline deadline) {
  const timespec longest =
      absl::ToTimespec(std::min<absl::Duration>(deadline.Remaining(), absl::Hours(1)));
  ::syscall(SYS_futex, &word, FUTEX_WAIT, value, &longest, nullptr, 0);
}

void SharedFutex::Wake(std::atomic<uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace tutti::comm
