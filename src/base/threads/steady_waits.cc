// Abseil before LTS 20230802 (Debian 12 has 20220623) waits on the wall clock: after the clock was
// set back by an hour, a wait of a second that had begun before takes an hour and a second. It lets
// a program bring its own semaphore for waits (absl/synchronization/internal/per_thread_sem.h); the
// one here waits on the monotonic clock, as later versions of Abseil do.
//
// Its operations are sequentially consistent, as no model explores them (decision 040), and each
// ends or begins a wait, beside which a fence costs nothing.
//
// Every executable that links this room has it (CMakeLists.txt).
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <new>

#include "absl/base/config.h"
#include "absl/synchronization/internal/create_thread_identity.h"
#include "absl/synchronization/internal/kernel_timeout.h"
#include "absl/synchronization/internal/per_thread_sem.h"

extern "C" {
extern const int TuttiSteadyWaits;  // what the linker is told to look for
const int TuttiSteadyWaits = 1;
}

#if defined(ABSL_LTS_RELEASE_VERSION) && ABSL_LTS_RELEASE_VERSION < 20230802

namespace {

using absl::base_internal::ThreadIdentity;
using absl::synchronization_internal::KernelTimeout;

constexpr int64_t kNanos = 1'000'000'000;

int64_t Now(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * kNanos + now.tv_nsec;
}

// How many wakes a thread has not taken yet. Abseil has set the storage to zero.
std::atomic<int32_t>& WakesOf(ThreadIdentity* identity) {
  using Wakes = std::atomic<int32_t>;
  static_assert(sizeof(Wakes) == sizeof(int32_t) && Wakes::is_always_lock_free);
  static_assert(sizeof(identity->waiter_state.data) >= sizeof(Wakes));
  return *std::launder(reinterpret_cast<Wakes*>(identity->waiter_state.data));
}

// When `timeout` ends, by the monotonic clock. Abseil goes on with the same timeout after it was
// woken for nothing; the clock may have been set meanwhile, so the first answer holds.
int64_t SteadyEnd(KernelTimeout timeout) {
  thread_local int64_t last_end = 0, last_steady_end = 0;
  const timespec end = timeout.MakeAbsTimespec();
  const int64_t wall_end = end.tv_sec * kNanos + end.tv_nsec;
  if (wall_end != last_end) {
    last_end = wall_end;
    last_steady_end = Now(CLOCK_MONOTONIC) + (wall_end - Now(CLOCK_REALTIME));
  }
  return last_steady_end;
}

bool Take(std::atomic<int32_t>& wakes) {
  int32_t count = wakes.load();
  while (count > 0) {
    if (wakes.compare_exchange_weak(count, count - 1)) return true;
  }
  return false;
}

// Until the count is no longer 0, for `nanos` at most; negative: for as long as it takes. May end
// earlier.
void Sleep(std::atomic<int32_t>& wakes, int64_t nanos) {
  const timespec time = {.tv_sec = nanos / kNanos, .tv_nsec = nanos % kNanos};
  syscall(SYS_futex, &wakes, FUTEX_WAIT_PRIVATE, 0, nanos < 0 ? nullptr : &time);
}

}  // namespace

extern "C" {

void ABSL_INTERNAL_C_SYMBOL(AbslInternalPerThreadSemPost)(ThreadIdentity* identity) {
  std::atomic<int32_t>& wakes = WakesOf(identity);
  if (wakes.fetch_add(1) == 0) {
    const int before = errno;
    syscall(SYS_futex, &wakes, FUTEX_WAKE_PRIVATE, 1);
    errno = before;
  }
}

bool ABSL_INTERNAL_C_SYMBOL(AbslInternalPerThreadSemWait)(KernelTimeout timeout) {
  std::atomic<int32_t>& wakes =
      WakesOf(absl::synchronization_internal::GetOrCreateCurrentThreadIdentity());
  const int before = errno;
  const int64_t end = timeout.has_timeout() ? SteadyEnd(timeout) : 0;
  bool woken = Take(wakes);
  while (!woken) {
    const int64_t left = timeout.has_timeout() ? end - Now(CLOCK_MONOTONIC) : -1;
    if (timeout.has_timeout() && left <= 0) break;
    Sleep(wakes, left);
    woken = Take(wakes);
  }
  errno = before;
  return woken;
}

}  // extern "C"

#endif
