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
}

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const long result = syscall(SYS_clock_gettime, clock, time);
  if (clock == CLOCK_REALTIME) time->tv_sec += shift_seconds;
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
    const absl::Time before = absl::Now();
    shift_seconds = GetParam();
    const absl::Duration shifted = absl::Now() - before;
    EXPECT_LT(absl::AbsDuration(shifted - absl::Seconds(GetParam())), absl::Seconds(60))
        << "the clock of this program is the test's";
  }
  ~SteadyWaitsTest() override { shift_seconds = 0; }

  const absl::Duration began_ = SteadyNow();
};

TEST_P(SteadyWaitsTest, AWaitTakesItsTimeWhateverTheWallClockSays) {
  absl::Mutex mutex;
  bool never = false;
  absl::MutexLock lock(&mutex);
  EXPECT_FALSE(mutex.AwaitWithTimeout(absl::Condition(&never), absl::Milliseconds(30)));
  const absl::Duration took = SteadyNow() - began_;
  EXPECT_GE(took, absl::Milliseconds(30));
  EXPECT_LT(took, Patient(absl::Seconds(20)));
}

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

INSTANTIATE_TEST_SUITE_P(SetTo, SteadyWaitsTest, ::testing::Values(0, 3600, -3600));

}  // namespace
}  // namespace tutti::base
