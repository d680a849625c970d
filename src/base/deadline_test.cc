#include "base/deadline.h"

#include <gtest/gtest.h>

namespace tutti::base {
namespace {

TEST(Deadline, APastDeadlineHasExpiredAndLeavesNothing) {
  const Deadline past = Deadline::After(-absl::Seconds(1));
  EXPECT_TRUE(past.Expired());
  EXPECT_EQ(past.Remaining(), absl::ZeroDuration());
  EXPECT_EQ(past.RemainingMillis(), 0);
}

TEST(Deadline, RoundsMillisecondsUpSoThatAPollNeverSpins) {
  EXPECT_GE(Deadline::After(absl::Microseconds(900)).RemainingMillis(), 0);
  EXPECT_GT(Deadline::After(absl::Minutes(1)).RemainingMillis(), 0);
}

TEST(Deadline, TakesTheSoonerOfTwo) {
  const Deadline near = Deadline::After(absl::Seconds(1));
  const Deadline far = Deadline::After(absl::Seconds(100));
  EXPECT_EQ(Deadline::Sooner(near, far).time_point(), near.time_point());
  EXPECT_EQ(Deadline::Sooner(far, near).time_point(), near.time_point());
}

TEST(Deadline, AnInfiniteDurationDoesNotOverflow) {
  EXPECT_FALSE(Deadline::After(absl::InfiniteDuration()).Expired());
  EXPECT_GT(Deadline::After(absl::InfiniteDuration()).RemainingMillis(), 1'000'000);
}

}  // namespace
}  // namespace tutti::base
