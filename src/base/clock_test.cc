#include "base/clock.h"

#include <gtest/gtest.h>

namespace tutti::base {
namespace {

const absl::Time kNoon = absl::FromUnixSeconds(43200);

TEST(ClockTest, ASpanIsOverAtItsEnd) {
  EXPECT_TRUE(IsWithin(absl::Seconds(5), kNoon, kNoon));
  EXPECT_TRUE(IsWithin(absl::Seconds(5), kNoon, kNoon + absl::Milliseconds(4999)));
  EXPECT_FALSE(IsWithin(absl::Seconds(5), kNoon, kNoon + absl::Seconds(5)));
  EXPECT_FALSE(IsWithin(absl::ZeroDuration(), kNoon, kNoon));
}

TEST(ClockTest, AClockThatWasSetBackEndsTheWait) {
  EXPECT_FALSE(IsWithin(absl::Seconds(5), kNoon, kNoon - absl::Milliseconds(1)));
}

TEST(ClockTest, AManualClockStandsStillUntilItIsMoved) {
  ManualClock clock(kNoon);
  EXPECT_EQ(clock.Now(), kNoon);
  clock.Advance(absl::Minutes(1));
  EXPECT_EQ(clock.Now(), kNoon + absl::Minutes(1));
}

}  // namespace
}  // namespace tutti::base
