#include "platform/http/handler_pool.h"

#include <gtest/gtest.h>

#include <atomic>

#include "absl/synchronization/notification.h"
#include "base/test_patience.h"

namespace tutti::http {
namespace {

constexpr std::array<int, kLanes> kTwoEach = {2, 2, 2, 2, 2, 2};

TEST(HandlerPool, ALaneThatIsFullKeepsNoOtherWaiting) {
  HandlerPool pool(kTwoEach);
  absl::Notification over, answered;
  std::atomic<int> begun = 0;
  for (int i = 0; i < 10; ++i) {
    pool.Add(Lane::kNode, [&](Lane&) {
      ++begun;
      over.WaitForNotification();
    });
  }
  pool.Add(Lane::kUser, [&](Lane&) { answered.Notify(); });
  EXPECT_TRUE(answered.WaitForNotificationWithTimeout(base::Patient(absl::Seconds(10))));
  EXPECT_LE(begun, 2);
  over.Notify();
  base::AwaitPatiently(absl::Seconds(10), [&] { return begun == 10; });
  EXPECT_EQ(begun, 10);
}

TEST(HandlerPool, ATaskThatMovesMakesRoomInItsLane) {
  HandlerPool pool({1, 1, 1, 1, 1, 1});
  absl::Notification moved, over, next;
  pool.Add(Lane::kProtocol, [&](Lane& lane) {
    ASSERT_TRUE(pool.Move(lane, Lane::kUser));
    lane = Lane::kUser;
    moved.Notify();
    over.WaitForNotification();
  });
  moved.WaitForNotification();
  pool.Add(Lane::kProtocol, [&](Lane& lane) {
    EXPECT_FALSE(pool.Move(lane, Lane::kUser));
    next.Notify();
  });
  EXPECT_TRUE(next.WaitForNotificationWithTimeout(base::Patient(absl::Seconds(10))));
  over.Notify();
}

TEST(HandlerPool, StopWaitsForWhatIsUnderWayAndDropsTheRest) {
  HandlerPool pool({1, 1, 1, 1, 1, 1});
  absl::Notification begun;
  std::atomic<int> done = 0;
  pool.Add(Lane::kUser, [&](Lane&) {
    begun.Notify();
    absl::SleepFor(absl::Milliseconds(5));  // stands for work
    ++done;
  });
  pool.Add(Lane::kUser, [&](Lane&) { absl::SleepFor(absl::Milliseconds(1)); });
  begun.WaitForNotification();
  pool.Stop();
  EXPECT_EQ(done, 1);
  EXPECT_EQ(pool.threads(), 0);
}

}  // namespace
}  // namespace tutti::http
