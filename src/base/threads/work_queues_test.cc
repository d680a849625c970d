#include "base/threads/work_queues.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include "absl/synchronization/notification.h"
#include "base/test_patience.h"
#include "base/threads/no_threads_for_tests.h"

namespace tutti::base {
namespace {

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
  absl::Notification hangs, release;
  std::atomic<bool> behind = false;  // outlive the threads
  WorkQueues work(2);
  work.Start();
  work.Do("hung", [&] {
    hangs.Notify();
    release.WaitForNotification();
  });
  ASSERT_TRUE(Comes(hangs));
  work.Do("hung", [&] { behind = true; });
  for (const char* other : {"a", "b", "c"})
    EXPECT_TRUE(work.DoWithin(
        other, [] {}, Soon()));
  EXPECT_FALSE(work.DoWithin(
      "hung", [] {}, Deadline::After(absl::Milliseconds(20))));
  EXPECT_FALSE(behind);
  // A task is at hand until its thread has seen that it is done.
  AwaitPatiently(absl::Seconds(10), [&] {
    const auto old = work.OlderThan(absl::ZeroDuration());
    return old.size() == 1 && old.front().first == "hung";
  });
  release.Notify();
  EXPECT_TRUE(work.DoWithin(
      "hung", [] {}, Soon()));
  EXPECT_TRUE(behind);
}

TEST(WorkQueuesTest, NobodyWaitsForWhatIsGivenUpAndItIsDoneAllTheSame) {
  WorkQueues work(2);
  work.Start();
  absl::Notification release, done;
  std::atomic<int> asked = 0;
  EXPECT_FALSE(work.DoWithin(
      "hung", [&] { release.WaitForNotification(); }, Soon(), [&] { return ++asked == 3; }));
  EXPECT_EQ(asked, 3) << "again and again";
  EXPECT_FALSE(work.DoWithin(
      "hung", [&] { done.Notify(); }, Soon(), [] { return true; }));
  release.Notify();
  EXPECT_TRUE(Comes(done));
  EXPECT_TRUE(work.DoWithin(
      "hung", [] {}, Soon(), [] { return false; }));
}

TEST(WorkQueuesTest, SaysWhereAnotherTaskWouldOnlyWait) {
  absl::Notification a, b, release;  // outlive the threads
  WorkQueues work(2);
  work.Start();
  EXPECT_FALSE(work.Hangs("a", absl::ZeroDuration()));
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
