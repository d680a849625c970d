#include "platform/launch/mpi/pmi_failure_watch.h"

#include <gtest/gtest.h>

namespace tutti::launch {
namespace {

constexpr absl::Duration kPatience = PmiFailureWatch::kPatience;

TEST(PmiFailureWatchTest, TellsOfARankThatStaysAway) {
  PmiFailureWatch watch;
  const absl::Duration t = absl::Seconds(100);
  const PmiFailure left{.rank = 2, .abort_code = std::nullopt};
  EXPECT_FALSE(watch.Look(left, t));
  EXPECT_FALSE(watch.Look(left, t + kPatience / 2));
  const std::optional<MpiFailure> told = watch.Look(left, t + kPatience);
  ASSERT_TRUE(told);
  EXPECT_EQ(told->rank, 2);
  EXPECT_EQ(told->error, "left MPI without MPI_Finalize, while others waited for it");
  EXPECT_TRUE(told->left);
}

TEST(PmiFailureWatchTest, WaitsAnewForEachRankAndForgetsThatOneHasGone) {
  PmiFailureWatch watch;
  const absl::Duration t = absl::Seconds(100);
  EXPECT_FALSE(watch.Look(PmiFailure{.rank = 2, .abort_code = std::nullopt}, t));
  EXPECT_FALSE(watch.Look(PmiFailure{.rank = 1, .abort_code = std::nullopt}, t + kPatience));
  EXPECT_FALSE(watch.Look(std::nullopt, t + kPatience * 2));
  EXPECT_FALSE(watch.Look(PmiFailure{.rank = 1, .abort_code = std::nullopt}, t + kPatience * 3));
}

TEST(PmiFailureWatchTest, TellsOfAnAbortAtOnce) {
  const std::optional<MpiFailure> told =
      PmiFailureWatch().Look(PmiFailure{.rank = 1, .abort_code = 3}, absl::Seconds(100));
  ASSERT_TRUE(told);
  EXPECT_EQ(told->error, "called MPI_Abort with exit code 3");
  EXPECT_TRUE(told->abort);
}

}  // namespace
}  // namespace tutti::launch
