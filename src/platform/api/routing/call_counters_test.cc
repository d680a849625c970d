#include "platform/api/routing/call_counters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::api {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class CallCountersTest : public ::testing::Test {
 protected:
  CallCounters counters_{{{"GET", "/v1/jobs"}, {"POST", "/v1/jobs"}}};
};

TEST_F(CallCountersTest, CountARoutesAnswersByStatusAndHowLongTheyTook) {
  EXPECT_THAT(counters_.Read(), IsEmpty());
  counters_.Add({.kind = 1, .status = 201, .time = absl::Milliseconds(3)});
  counters_.Add({.kind = 1, .status = 201, .time = absl::Milliseconds(4)});
  counters_.Add({.kind = 1, .status = 507, .time = absl::Minutes(2)});
  const auto counts = counters_.Read();
  ASSERT_EQ(counts.size(), 1) << "the other was not called";
  EXPECT_EQ(counts[0].method, "POST");
  EXPECT_EQ(counts[0].route, "/v1/jobs");
  EXPECT_THAT(counts[0].answers, ElementsAre(Pair(201, 2), Pair(507, 1)));
  EXPECT_EQ(counts[0].times.counts()[1], 2);
  EXPECT_EQ(counts[0].times.counts().back(), 1);
}

TEST_F(CallCountersTest, CountWhatIsNoCallTogether) {
  counters_.Add({.kind = -1, .status = 404});
  counters_.Add({.kind = -1, .status = 405});
  counters_.Add({.kind = 2, .status = 404});
  const auto counts = counters_.Read();
  ASSERT_EQ(counts.size(), 1);
  EXPECT_EQ(counts[0].method, "other");
  EXPECT_THAT(counts[0].answers, ElementsAre(Pair(404, 2), Pair(405, 1)));
}

}  // namespace
}  // namespace tutti::api
