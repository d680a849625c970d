#include "runtime/parallel/collective_lane.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "runtime/parallel/thread_group_fake.h"

namespace tutti::parallel {
namespace {

base::Deadline Soon() { return base::Deadline::After(absl::Seconds(20)); }

// A lane of rank 0 in a group of two; what it runs never needs the other rank.
std::unique_ptr<CollectiveLane> Lane() {
  return std::make_unique<CollectiveLane>(std::move(MakeThreadGroup(2)[0]));
}

TEST(CollectiveLane, RunsInTheOrderOfIssue) {
  auto lane = Lane();
  std::vector<int> order;
  int64_t last = 0;
  for (int i = 0; i < 100; ++i) {
    last = lane->Issue([&order, i](comm::Communicator&) {
      order.push_back(i);
      return absl::OkStatus();
    });
  }
  ASSERT_TRUE(lane->Wait(last, Soon()).ok());
  ASSERT_EQ(order.size(), 100u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(CollectiveLane, TheFirstErrorEndsIt) {
  auto lane = Lane();
  bool ran_after = false;
  lane->Issue([](comm::Communicator&) { return absl::UnavailableError("rank 1 left"); });
  const int64_t after = lane->Issue([&](comm::Communicator&) {
    ran_after = true;
    return absl::OkStatus();
  });
  EXPECT_EQ(lane->Wait(after, Soon()), absl::UnavailableError("rank 1 left"));
  EXPECT_EQ(lane->Run([](comm::Communicator&) { return absl::OkStatus(); }, Soon()),
            absl::UnavailableError("rank 1 left"));
  EXPECT_EQ(lane->status(), absl::UnavailableError("rank 1 left"));
  EXPECT_FALSE(ran_after);
}

TEST(CollectiveLane, WaitKeepsItsDeadline) {
  absl::Notification go;
  auto lane = Lane();
  const int64_t ticket = lane->Issue([&](comm::Communicator&) {
    go.WaitForNotification();
    return absl::OkStatus();
  });
  EXPECT_EQ(lane->Wait(ticket, base::Deadline::After(absl::Milliseconds(1))).code(),
            absl::StatusCode::kDeadlineExceeded);
  go.Notify();
  EXPECT_TRUE(lane->Wait(ticket, Soon()).ok());
}

TEST(CollectiveLane, DestructionEndsWithMuchStillQueued) {
  absl::Notification begun, go;
  auto lane = Lane();
  lane->Issue([&](comm::Communicator&) {
    begun.Notify();
    go.WaitForNotification();
    return absl::OkStatus();
  });
  for (int i = 0; i < 1000; ++i) {
    lane->Issue([](comm::Communicator&) { return absl::OkStatus(); });
  }
  begun.WaitForNotification();
  std::thread release([&] { go.Notify(); });
  lane.reset();
  release.join();
}

TEST(CollectiveLane, AGroupOfOneRunsNothing) {
  CollectiveLane lane(std::move(MakeThreadGroup(1)[0]));
  bool ran = false;
  EXPECT_TRUE(lane.Run(
                      [&](comm::Communicator&) {
                        ran = true;
                        return absl::OkStatus();
                      },
                      Soon())
                  .ok());
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace tutti::parallel
