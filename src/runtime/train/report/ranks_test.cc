#include "runtime/train/report/ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace tutti::train {
namespace {

using testing::HasSubstr;
using testing::Not;

// Rank 2 decodes slowly; the others wait for it in their communication.
const std::vector<StepParts> kOneDecodesSlowly = {
    {.data = .001, .forward = .010, .backward = .020, .communication = .031, .optimizer = .001},
    {.data = .002, .forward = .011, .backward = .019, .communication = .030, .optimizer = .001},
    {.data = .030, .forward = .011, .backward = .020, .communication = .001, .optimizer = .001},
    {.data = .001, .forward = .010, .backward = .021, .communication = .030, .optimizer = .001}};

TEST(StepParts, AddUpToTheStepAndOwnTimeIsAllButWaiting) {
  const StepParts& parts = kOneDecodesSlowly[0];
  EXPECT_DOUBLE_EQ(parts.Sum(), .063);
  EXPECT_DOUBLE_EQ(parts.Own(), .032);
  StepParts twice = parts;
  twice += parts;
  EXPECT_DOUBLE_EQ((twice / 2).Sum(), parts.Sum());
  EXPECT_DOUBLE_EQ((twice - parts).Sum(), parts.Sum());
}

TEST(SlowestRank, IsTheOneThatDoesNotWaitAndItsPartFurthestFromTheMedian) {
  const auto found = SlowestRank(kOneDecodesSlowly);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->rank, 2);
  EXPECT_EQ(found->part.name, "data");
  EXPECT_DOUBLE_EQ(found->seconds, .030);
  EXPECT_DOUBLE_EQ(found->median, .001);
  EXPECT_EQ(Describe(*found),
            "rank 2 is the slowest: 62.0 ms of its own per step, the median rank 33.0 ms; data "
            "takes 30.0 ms there, in the median 1.0 ms");
}

TEST(SlowestRank, OfTwoIsHeldAgainstTheOther) {
  const std::vector<StepParts> two = {{.forward = .02, .backward = .04},
                                      {.forward = .02, .backward = .02, .communication = .02}};
  const auto found = SlowestRank(two);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->rank, 0);
  EXPECT_EQ(found->part.name, "backward");
  EXPECT_DOUBLE_EQ(found->median, .02);
}

TEST(SlowestRank, IsNobodyWhereRanksAreEvenOrAlone) {
  const std::vector<StepParts> even = {{.forward = .0200}, {.forward = .0204}};
  EXPECT_FALSE(SlowestRank(even).has_value());
  EXPECT_FALSE(SlowestRank(std::vector<StepParts>{{.forward = 1}}).has_value());
  EXPECT_FALSE(SlowestRank(std::vector<StepParts>(3)).has_value()) << "no step was measured";
}

TEST(DescribeRanks, ShowsTheFirstRanksAndTheSlowest) {
  std::vector<StepParts> ranks(20, {.forward = .01});
  ranks[17].forward = .02;
  const std::string text = DescribeRanks(ranks);
  EXPECT_THAT(text, HasSubstr("\n  rank 7 "));
  EXPECT_THAT(text, Not(HasSubstr("\n  rank 8 ")));
  EXPECT_THAT(text, HasSubstr("\n  rank 17 "));
  EXPECT_THAT(text, HasSubstr("rank 17 is the slowest"));
  EXPECT_THAT(DescribeRanks(std::vector<StepParts>(2)), Not(HasSubstr("slowest")));
}

TEST(RanksJson, HasEveryPartOfEveryRankAndWhoIsSlowest) {
  const nlohmann::json json = RanksJson(kOneDecodesSlowly);
  ASSERT_EQ(json["ranks"].size(), 4u);
  EXPECT_EQ(json["ranks"][1], nlohmann::json({{"data", .002},
                                              {"forward", .011},
                                              {"backward", .019},
                                              {"communication", .030},
                                              {"optimizer", .001},
                                              {"other", 0.}}));
  EXPECT_EQ(json["slowest"]["rank"], 2);
  EXPECT_EQ(json["slowest"]["part"], "data");
  EXPECT_TRUE(RanksJson(std::vector<StepParts>(1))["slowest"].is_null());
}

}  // namespace
}  // namespace tutti::train
