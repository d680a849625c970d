#include "platform/client/text/sparkline.h"

#include <gtest/gtest.h>

#include <limits>

namespace tutti::client {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

TEST(SparklineTest, DrawsFromNothingToTheGreatest) {
  EXPECT_EQ(Sparkline({0, 1, 2, 4, 8}, 10), "▁▂▃▅█");
}

TEST(SparklineTest, DrawsWhatIsTheSameAsFull) { EXPECT_EQ(Sparkline({3, 3}, 10), "██"); }

TEST(SparklineTest, DrawsNothingButZeros) { EXPECT_EQ(Sparkline({0, 0, 0}, 10), "▁▁▁"); }

TEST(SparklineTest, FitsTheColumnsByMeans) {
  EXPECT_EQ(Sparkline({0, 0, 4, 4, 8, 8}, 3), "▁▅█");
  EXPECT_EQ(Sparkline({0, 2, 7, 9, 1}, 0), "");
}

TEST(SparklineTest, LeavesAGapWhereAValueIsNotKnown) {
  EXPECT_EQ(Sparkline({8, kUnknown, 8}, 10), "█ █");
  EXPECT_EQ(Sparkline({kUnknown, 8}, 1), "█");
  EXPECT_EQ(Sparkline({kUnknown, kUnknown}, 10), "");
  EXPECT_EQ(Sparkline({}, 10), "");
}

}  // namespace
}  // namespace tutti::client
