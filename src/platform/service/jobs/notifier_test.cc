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

TEST(NotifierTest, WaitsNoLongerThanTheDeadline) {
  Notifier notifier;
  notifier.WaitPast(0, base::Deadline::After(absl::Milliseconds(1)));
  EXPECT_EQ(notifier.count(), 0);
}

}  // namespace
}  // namespace tutti::service
