// These tests pass values between threads that Abseil alone orders: ThreadSanitizer would report
// them without tsan_mutex.cc.
#include <gtest/gtest.h>

#include <thread>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "base/test_patience.h"

namespace tutti::base {
namespace {

class TsanMutexTest : public ::testing::Test {
 protected:
  absl::Mutex mutex_;
  absl::CondVar changed_;
  absl::Notification done_;
  int value_ = 0;
  bool is_set_ = false;
};

TEST_F(TsanMutexTest, WhoGetsAMutexSeesWhatWasDoneUnderIt) {
  const auto add = [&] {
    for (int i = 0; i < 1000; ++i) {
      absl::MutexLock lock(&mutex_);
      ++value_;
    }
  };
  std::thread other(add);
  add();
  other.join();
  EXPECT_EQ(value_, 2000);
}

TEST_F(TsanMutexTest, SoDoesWhoAwaitsACondition) {
  std::thread other([&] {
    absl::MutexLock lock(&mutex_);
    value_ = 1;
    is_set_ = true;
  });
  {
    absl::MutexLock lock(&mutex_);
    EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&is_set_), Patient(absl::Seconds(30))));
    mutex_.Await(absl::Condition(&is_set_));
    EXPECT_EQ(value_, 1);
  }
  other.join();
}

TEST_F(TsanMutexTest, SoDoesWhoWaitsForASignal) {
  std::thread other([&] {
    absl::MutexLock lock(&mutex_);
    value_ = 1;
    is_set_ = true;
    changed_.SignalAll();
  });
  {
    absl::MutexLock lock(&mutex_);
    while (!is_set_) {
      if (changed_.WaitWithTimeout(&mutex_, Patient(absl::Seconds(30)))) break;
    }
    EXPECT_EQ(value_, 1);
  }
  other.join();
}

TEST_F(TsanMutexTest, SoDoesWhoWasNotifiedOrAsksForIt) {
  std::thread other([&] {
    value_ = 1;
    done_.Notify();
  });
  while (!done_.HasBeenNotified()) std::this_thread::yield();
  EXPECT_EQ(value_, 1);
  std::thread third([&] {
    done_.WaitForNotification();
    EXPECT_EQ(value_, 1);
  });
  third.join();
  other.join();
}

}  // namespace
}  // namespace tutti::base
