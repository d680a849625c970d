#include "base/threads/work_queues.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include "absl/synchronization/notification.h"
#include "base/test_patience.h"
#include "base/threads/no_threads_for_tests.h"

namespace tutti::base {
namespace {

using ::testing::SizeIs;

Deadline Soon() { return Deadline::After(Patient(absl::Seconds(10))); }
bool Comes(const absl::Notification& it) {
  return it.WaitForNotificationWithTimeout(Patient(absl::Seconds(10)));
}

TEST(WorkQueuesTest, DoesItInTheCallersThreadUntilItIsStarted) {
  WorkQueues work(2);
  bool done = false;
  work.Do("a", [&] { done = true; });
  EXPECT_TRUE(done);
}

TEST(WorkQueuesTest, KeepsTheOrderOfAQueue) {
  WorkQueues work(4);
  work.Start();
  std::vector<int> order;
  for (int i = 0; i < 100; ++i) work.Do("a", [&order, i] { order.push_back(i); });
  ASSERT_TRUE(work.DoWithin(
      "a", [] {}, Soon()));
  for (int i = 0; i < 100; ++i) ASSERT_EQ(order.at(i), i);
}

TEST(WorkQueuesTest, GoesOnBesideAQueueThatHangs) {
  WorkQueues work(2);
  work.Start();
  absl::Notification hangs, release;
  work.Do("hung", [&] {
    hangs.Notify();
    release.WaitForNotification();
  });
  ASSERT_TRUE(Comes(hangs));
  std::atomic<bool> behind = false;
  work.Do("hung", [&] { behind = true; });
  for (const char* other : {"a", "b", "c"})
    EXPECT_TRUE(work.DoWithin(
        other, [] {}, Soon()));
  EXPECT_FALSE(work.DoWithin(
      "hung", [] {}, Deadline::After(absl::Milliseconds(20))));
  EXPECT_FALSE(behind);
  const auto old = work.OlderThan(absl::ZeroDuration());
  ASSERT_THAT(old, SizeIs(1));
  EXPECT_EQ(old.front().first, "hung");
  release.Notify();
  EXPECT_TRUE(work.DoWithin(
      "hung", [] {}, Soon()));
  EXPECT_TRUE(behind);
}

TEST(WorkQueuesTest, SaysWhereAnotherTaskWouldOnlyWait) {
  WorkQueues work(2);
  work.Start();
  EXPECT_FALSE(work.Hangs("a", absl::ZeroDuration()));
  absl::Notification a, b, release;
  const auto hang = [&release](absl::Notification& begun) {
    return [&] {
      begun.Notify();
      release.WaitForNotification();
    };
  };
  work.Do("a", hang(a));
  ASSERT_TRUE(Comes(a));
  EXPECT_TRUE(work.Hangs("a", absl::ZeroDuration()));
  EXPECT_FALSE(work.Hangs("a", absl::Hours(1)));
  EXPECT_FALSE(work.Hangs("b", absl::ZeroDuration()));
  work.Do("b", hang(b));
  ASSERT_TRUE(Comes(b));
  EXPECT_TRUE(work.Hangs("c", absl::ZeroDuration())) << "all threads do";
  release.Notify();
}

TEST(WorkQueuesTest, StopsWithoutWhatHangsAndSaysSo) {
  absl::Notification hangs, release;
  bool dropped = true;
  {
    WorkQueues work(2);
    work.Start();
    work.Do("hung", [&] {
      hangs.Notify();
      release.WaitForNotification();
    });
    ASSERT_TRUE(Comes(hangs));
    work.Do("hung", [&] { dropped = false; });
    EXPECT_FALSE(work.Stop(Deadline::After(absl::Milliseconds(10))));
    release.Notify();
    EXPECT_TRUE(work.Stop(Soon()));
  }
  EXPECT_TRUE(dropped);
}

TEST(WorkQueuesTest, AnExceptionEndsItsTaskAlone) {
  WorkQueues work(2);
  const auto fails = [] { throw std::runtime_error("stale file handle"); };
  work.Do("a", fails);
  work.Start();
  work.Do("a", fails);
  EXPECT_FALSE(work.DoWithin("a", fails, Soon()));
  EXPECT_TRUE(work.DoWithin(
      "a", [] {}, Soon()));
}

TEST(WorkQueuesTest, WhatFoundNoThreadIsDoneOnceThereIsOne) {
  WorkQueues work(2);
  work.Start();
  absl::Notification done;
  {
    const NoThreads none;
    work.Do("a", [&] { done.Notify(); });
  }
  EXPECT_TRUE(work.DoWithin(
      "b", [] {}, Soon()));
  EXPECT_TRUE(Comes(done));
}

}  // namespace
}  // namespace tutti::base
