#include "platform/scheduler/node_timeline.h"

#include <gtest/gtest.h>

namespace tutti::scheduler {
namespace {

const absl::Time kZero = absl::FromUnixSeconds(1'800'000'000);
absl::Time At(int minutes) { return kZero + absl::Minutes(minutes); }

TEST(Timeline, KnowsSinceWhenAndHowLongThereIsRoom) {
  Timeline node(kZero, {.cores = 4});
  node.Take({.cores = 3}, kZero, At(10));
  node.Take({.cores = 2}, At(20), At(30));
  EXPECT_EQ(node.now().cores, 1);
  EXPECT_TRUE(node.HasRoom({.cores = 3}, At(10), absl::Minutes(10)));
  EXPECT_FALSE(node.HasRoom({.cores = 3}, At(10), absl::Minutes(11)));
  EXPECT_FALSE(node.HasRoom({.cores = 3}, At(9), absl::Minutes(1)));
  EXPECT_TRUE(node.HasRoom({.cores = 1}, kZero, absl::InfiniteDuration()));
  EXPECT_EQ(node.RoomSince({.cores = 3}, At(15)), At(10));
  EXPECT_EQ(node.RoomSince({.cores = 3}, At(5)), absl::InfiniteFuture());
  std::vector<Window> windows;
  node.AddWindows({.cores = 3}, absl::Minutes(8), windows);
  ASSERT_EQ(windows.size(), 2u);
  EXPECT_EQ(windows[0].first, At(10));
  EXPECT_EQ(windows[0].last, At(12));
  EXPECT_EQ(windows[1].first, At(30));
  EXPECT_EQ(windows[1].last, absl::InfiniteFuture());
}

TEST(Timeline, WhatIsKeptForAJobOfUnknownStartIsClosedToTheEndlessAlone) {
  Timeline node(kZero, {.cores = 2});
  node.Take({.cores = 1}, kZero, absl::InfiniteFuture());
  node.Take({.cores = 2}, absl::InfiniteFuture(), absl::InfiniteFuture());
  EXPECT_TRUE(node.HasRoom({.cores = 1}, kZero, absl::Hours(1000)));
  EXPECT_FALSE(node.HasRoom({.cores = 1}, kZero, absl::InfiniteDuration()));
  EXPECT_EQ(node.at_last().cores, -1);
}

}  // namespace
}  // namespace tutti::scheduler
