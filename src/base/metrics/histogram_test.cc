#include "base/metrics/histogram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace tutti::base {
namespace {

using ::testing::ElementsAre;

constexpr std::array kBounds = {absl::Milliseconds(10), absl::Seconds(1)};

TEST(Histogram, ABoundIsAmongWhatItBounds) {
  Histogram times(kBounds);
  times.Add(absl::Milliseconds(10));
  times.Add(absl::Milliseconds(11));
  times.Add(absl::Seconds(1));
  times.Add(absl::Seconds(2));
  EXPECT_THAT(times.counts(), ElementsAre(1, 2, 1));
  EXPECT_EQ(times.sum(), absl::Milliseconds(3021));
}

TEST(Histogram, AClockThatWasSetBackTakesNothingAway) {
  Histogram times(kBounds);
  times.Add(-absl::Hours(1));
  EXPECT_THAT(times.counts(), ElementsAre(1, 0, 0));
  EXPECT_EQ(times.sum(), absl::ZeroDuration());
}

}  // namespace
}  // namespace tutti::base
