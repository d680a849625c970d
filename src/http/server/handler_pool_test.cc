#include "http/server/handler_pool.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <string>

#include "absl/synchronization/notification.h"
#include "base/test_patience.h"

namespace tutti::http {
namespace {

std::array<int, kLanes> Each(int most) {
  std::array<int, kLanes> lanes;
  lanes.fill(most);
  return lanes;
}

TEST(HandlerPool, ALaneThatIsFullKeepsNoOtherWaiting) {
  HandlerPool pool(Each(2));
  absl::Notification over, answered;
  std::atomic<int> begun = 0;
  for (int i = 0; i < 10; ++i) {
    pool.Add({Lane::kNode}, [&](Place&) {
      ++begun;
      over.WaitForNotification();
    });
  }
  pool.Add({Lane::kUser}, [&](Place&) { answered.Notify(); });
  EXPECT_TRUE(answered.WaitForNotificationWithTimeout(base::Patient(absl::Seconds(10))));
  EXPECT_LE(begun, 2);
  over.Notify();
  base::AwaitPatiently(absl::Seconds(10), [&] { return begun == 10; });
  EXPECT_EQ(begun, 10);
}

TEST(HandlerPool, AGroupHasAFewThreadsOfALaneAndKeepsNoOtherWaiting) {
  HandlerPool pool(Each(kMostOfAGroup + 1));
  absl::Notification over, answered;
  std::atomic<int> begun = 0;
  for (int i = 0; i < 3 * kMostOfAGroup; ++i) {
    pool.Add({Lane::kUserSlow, "one"}, [&](Place&) {
      ++begun;
      over.WaitForNotification();
    });
  }
  base::AwaitPatiently(absl::Seconds(10), [&] { return begun == kMostOfAGroup; });
  pool.Add({Lane::kUserSlow, "another"}, [&](Place& place) {
    EXPECT_FALSE(pool.Move(place, {Lane::kUserSlow, "one"}));
    answered.Notify();
  });
  EXPECT_TRUE(answered.WaitForNotificationWithTimeout(base::Patient(absl::Seconds(10))));
  EXPECT_EQ(begun, kMostOfAGroup);
  EXPECT_TRUE(pool.Stuck({Lane::kUserSlow, "one"}, absl::ZeroDuration()));
  EXPECT_FALSE(pool.Stuck({Lane::kUserSlow, "one"}, absl::Hours(1)));
  EXPECT_FALSE(pool.Stuck({Lane::kUserSlow, "another"}, absl::ZeroDuration()));
  over.Notify();
  base::AwaitPatiently(absl::Seconds(10), [&] { return begun == 3 * kMostOfAGroup; });
  EXPECT_EQ(begun, 3 * kMostOfAGroup);
}

TEST(HandlerPool, GroupsTakeTurns) {
  HandlerPool pool(Each(1));
  absl::Notification all_there, over;
  std::string order;
  pool.Add({Lane::kUser, "a"}, [&](Place&) { all_there.WaitForNotification(); });
  for (const char* group : {"a", "a", "b", "b"}) {
    pool.Add({Lane::kUser, group}, [&order, group](Place&) { order += group; });
  }
  pool.Add({Lane::kUser, "b"}, [&](Place&) { over.Notify(); });
  all_there.Notify();
  EXPECT_TRUE(over.WaitForNotificationWithTimeout(base::Patient(absl::Seconds(10))));
  EXPECT_EQ(order, "baba");
}

TEST(HandlerPool, ATaskThatMovesMakesRoomInItsLane) {
  HandlerPool pool(Each(1));
  absl::Notification moved, over, next;
  pool.Add({Lane::kProtocol}, [&](Place& place) {
    ASSERT_TRUE(pool.Move(place, {Lane::kUser}));
    place = {Lane::kUser};
    moved.Notify();
    over.WaitForNotification();
  });
  moved.WaitForNotification();
  pool.Add({Lane::kProtocol}, [&](Place& place) {
    EXPECT_FALSE(pool.Move(place, {Lane::kUser}));
    next.Notify();
  });
  EXPECT_TRUE(next.WaitForNotificationWithTimeout(base::Patient(absl::Seconds(10))));
  over.Notify();
}

TEST(HandlerPool, StopWaitsForWhatIsUnderWayAndDropsTheRest) {
  HandlerPool pool(Each(1));
  absl::Notification begun;
  std::atomic<int> done = 0;
  pool.Add({Lane::kUser}, [&](Place&) {
    begun.Notify();
    absl::SleepFor(absl::Milliseconds(5));  // stands for work
    ++done;
  });
  pool.Add({Lane::kUser}, [&](Place&) { absl::SleepFor(absl::Milliseconds(1)); });
  begun.WaitForNotification();
  pool.Stop();
  EXPECT_EQ(done, 1);
  EXPECT_EQ(pool.threads(), 0);
}

}  // namespace
}  // namespace tutti::http
