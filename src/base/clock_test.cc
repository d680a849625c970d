#include "base/clock.h"

#include <gtest/gtest.h>

namespace tutti::base {
namespace {

const absl::Time kNoon = absl::FromUnixSeconds(43200);

TEST(ClockTest, AManualClockStandsStillUntilItIsMoved) {
  ManualClock clock(kNoon);
  EXPECT_EQ(clock.Now(), kNoon);
  clock.Advance(absl::Minutes(1));
  EXPECT_EQ(clock.Now(), kNoon + absl::Minutes(1));
}

}  // namespace
}  // namespace tutti::base
