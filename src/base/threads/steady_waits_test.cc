// What waits for a time on a machine whose clock is set meanwhile. This program brings its own
// functions of the C library, which shift the wall clock from what the kernel has.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/deadline.h"
#include "base/test_patience.h"

namespace {
std::atomic<int64_t> shift_seconds = 0;
std::atomic<int64_t> looks_at_wall_clock = 0;
}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const long result = syscall(SYS_clock_gettime, clock, time);
  if (clock == CLOCK_REALTIME) {
    ++looks_at_wall_clock;
    time->tv_sec += shift_seconds;
  }
  return static_cast<int>(result);
}

extern "C" int gettimeofday(timeval* time, void*) noexcept {
  timespec now;
  const int result = clock_gettime(CLOCK_REALTIME, &now);
  *time = {.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
  return result;
}

namespace tutti::base {
namespace {

class SteadyWaitsTest : public ::testing::TestWithParam<int64_t> {
 protected:
  SteadyWaitsTest() {
    shift_seconds = GetParam();
    EXPECT_TRUE(AbseilSeesTheShift()) << "the clock of this program is the test's";
  }
  ~SteadyWaitsTest() override {
    shift_seconds = 0;
    EXPECT_TRUE(AbseilSeesTheShift());
  }

  // Abseil's Now() reads the clock every few seconds only and counts cycles between.
  static bool AbseilSeesTheShift() {
    timespec now;
    const Deadline deadline = Deadline::After(Patient(absl::Seconds(20)));
    while (!deadline.Expired()) {
      clock_gettime(CLOCK_REALTIME, &now);
      if (absl::AbsDuration(absl::Now() - absl::TimeFromTimespec(now)) < absl::Seconds(60)) {
        return true;
      }
    }
    return false;
  }

  static void AWaitTakesItsTime() {
    absl::Mutex mutex;
    bool never = false;
    absl::MutexLock lock(&mutex);
    const absl::Duration began = SteadyNow();
    EXPECT_FALSE(mutex.AwaitWithTimeout(absl::Condition(&never), absl::Milliseconds(30)));
    const absl::Duration took = SteadyNow() - began;
    EXPECT_GE(took, absl::Milliseconds(30));
    EXPECT_LT(took, Patient(absl::Seconds(20)));
  }
};

TEST_P(SteadyWaitsTest, AWaitTakesItsTimeWhateverTheWallClockSays) { AWaitTakesItsTime(); }

TEST_P(SteadyWaitsTest, AWaitIsWokenThoughTheWallClockIsSetMeanwhile) {
  absl::Mutex mutex;
  absl::CondVar changed;
  bool waits = false, woken = false;
  std::thread waker([&] {
    absl::MutexLock lock(&mutex);
    mutex.Await(absl::Condition(&waits));
    shift_seconds = -GetParam();
    woken = true;
    changed.Signal();
  });
  {
    absl::MutexLock lock(&mutex);
    waits = true;
    while (!woken && !changed.WaitWithTimeout(&mutex, Patient(absl::Seconds(20)))) {
    }
    EXPECT_TRUE(woken);
  }
  waker.join();
}

TEST_P(SteadyWaitsTest, ManyThreadsTakeTurnsWithoutALostWake) {
  constexpr int kThreads = 8, kTurns = 500;
  absl::Mutex mutex;
  int turn = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < kTurns; ++round) {
        const auto mine = [&] { return turn % kThreads == i; };
        absl::MutexLock lock(&mutex);
        EXPECT_TRUE(mutex.AwaitWithTimeout(absl::Condition(&mine), Patient(absl::Seconds(60))));
        ++turn;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(turn, kThreads * kTurns);
}

TEST_P(SteadyWaitsTest, AWaitTakesItsTimeThoughAbseilHasNotSeenTheClockSet) {
  const auto begins_cached = [] {  // whether Abseil told the time without a look at the clock
    const int64_t looks = looks_at_wall_clock;
    absl::Now();
    return looks_at_wall_clock == looks;
  };
  const Deadline deadline = Deadline::After(Patient(absl::Seconds(2)));
  while (!begins_cached() && !deadline.Expired()) {
  }
  shift_seconds = -GetParam();
  AWaitTakesItsTime();
}

INSTANTIATE_TEST_SUITE_P(SetTo, SteadyWaitsTest, ::testing::Values(0, 3600, -3600));

}  // namespace
}  // namespace tutti::base
