#include "platform/service/jobs/notifier.h"

#include <gtest/gtest.h>

#include <thread>

namespace tutti::service {
namespace {

TEST(NotifierTest, DoesNotWaitForWhatHasCome) {
  Notifier notifier;
  const int64_t seen = notifier.count();
  notifier.Notify();
  notifier.WaitPast(seen, base::Deadline::After(absl::Hours(1)));
  EXPECT_EQ(notifier.count(), seen + 1);
}

TEST(NotifierTest, WakesThoseWhoWait) {
  Notifier notifier;
  std::thread waiting([&] { notifier.WaitPast(0, base::Deadline::After(absl::Hours(1))); });
  notifier.Notify();
  waiting.join();
}

TEST(NotifierTest, CallsASubscriberAsLongAsItsSubscriptionLives) {
  const auto notifier = std::make_shared<Notifier>();
  int first = 0, second = 0;
  Subscription kept = notifier->Subscribe([&] { ++first; });
  {
    const Subscription passing = notifier->Subscribe([&] { ++second; });
    notifier->Notify();
  }
  Subscription moved = std::move(kept);
  notifier->Notify();
  EXPECT_EQ(first, 2);
  EXPECT_EQ(second, 1);
  moved = Subscription();
  notifier->Notify();
  EXPECT_EQ(first, 2);
}

TEST(NotifierTest, WaitsNoLongerThanTheDeadline) {
  Notifier notifier;
  notifier.WaitPast(0, base::Deadline::After(absl::Milliseconds(1)));
  EXPECT_EQ(notifier.count(), 0);
}

}  // namespace
}  // namespace tutti::service
