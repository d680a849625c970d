#include "platform/service/flow/ended_trials.h"

#include <gmock/gmock.h>

namespace tutti::service {
namespace {

TEST(EndedTrials, KnowsWhatItWasToldAndNoMoreThanItMayHold) {
  EndedTrials trials(2);
  EXPECT_FALSE(trials.Find(7).has_value());
  trials.Keep(7, {{"0.1"}, 3.5});
  trials.Keep(8, {{"0.2"}, std::nullopt});
  EXPECT_EQ(trials.Find(7)->metric, 3.5);
  EXPECT_THAT(trials.Find(8)->values, ::testing::ElementsAre("0.2"));
  EXPECT_FALSE(trials.Find(8)->metric.has_value());
  trials.Keep(9, {});
  EXPECT_FALSE(trials.Find(7).has_value());
  EXPECT_TRUE(trials.Find(9).has_value());
}

}  // namespace
}  // namespace tutti::service
