#include "platform/tracking/search/filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace tutti::tracking {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Comparison One(absl::string_view filter, Subject subject = Subject::kRuns) {
  const auto parsed = ParseFilter(filter, subject);
  EXPECT_TRUE(parsed.ok()) << filter << ": " << parsed.status();
  if (!parsed.ok() || parsed->size() != 1) return {.key = "none"};
  return parsed->front();
}

std::string Refusal(absl::string_view filter, Subject subject = Subject::kRuns) {
  const auto parsed = ParseFilter(filter, subject);
  EXPECT_TRUE(absl::IsInvalidArgument(parsed.status())) << filter;
  return std::string(parsed.status().message());
}

TEST(Filter, ReadsComparisonsThatAllHold) {
  const auto parsed = ParseFilter(
      "metrics.loss < 0.5 and params.`batch size` = '32' AND tags.mlflow.source.type LIKE 'J%'",
      Subject::kRuns);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  ASSERT_EQ(parsed->size(), 3u);
  EXPECT_EQ((*parsed)[0].entity, Entity::kMetric);
  EXPECT_EQ((*parsed)[0].key, "loss");
  EXPECT_EQ((*parsed)[0].op, Operator::kLess);
  EXPECT_EQ((*parsed)[0].number, 0.5);
  EXPECT_EQ((*parsed)[1].key, "batch size");
  EXPECT_THAT((*parsed)[1].texts, ElementsAre("32"));
  EXPECT_EQ((*parsed)[2].key, "mlflow.source.type");
  EXPECT_EQ((*parsed)[2].op, Operator::kLike);
}

TEST(Filter, AnEmptyOneHasNoComparison) {
  EXPECT_TRUE(ParseFilter("", Subject::kRuns)->empty());
  EXPECT_TRUE(ParseFilter("  \n", Subject::kExperiments)->empty());
}

TEST(Filter, KnowsEntitiesAndAttributesByAllTheirNames) {
  EXPECT_EQ(One("parameter.x = 'a'").entity, Entity::kParam);
  EXPECT_EQ(One("attr.Created > 3").key, "start_time");
  EXPECT_EQ(One("run.`Run name` = 'a'").key, "run_name");
  EXPECT_EQ(One("status = \"FINISHED\"").key, "status");
  EXPECT_EQ(One("datasets.digest ILIKE 'a'").entity, Entity::kDataset);
  EXPECT_EQ(One("name = 'x'", Subject::kExperiments).key, "name");
}

TEST(Filter, ReadsNumbersInAllTheirForms) {
  EXPECT_EQ(One("metrics.a >= -1e-3").number, -1e-3);
  EXPECT_EQ(One("metrics.a!=.5").number, 0.5);
  EXPECT_EQ(One("metrics.a.2 = 3").key, "a.2");
  EXPECT_EQ(One("metrics.val/loss > 1").key, "val/loss");
}

TEST(Filter, ReadsListsAndWhatIsNull) {
  EXPECT_THAT(One("run_id IN ('a', \"b\")").texts, ElementsAre("a", "b"));
  EXPECT_EQ(One("attributes.run_id not in ('a')").op, Operator::kNotIn);
  EXPECT_EQ(One("tags.x IS NULL").op, Operator::kIsNull);
  EXPECT_EQ(One("params.x is not null").op, Operator::kIsNotNull);
}

TEST(Filter, AQuotedTextIsTakenAsItIs) {
  EXPECT_THAT(One("params.x = 'it is \"so\"; DROP TABLE runs'").texts,
              ElementsAre("it is \"so\"; DROP TABLE runs"));
  EXPECT_THAT(One("params.x = ''").texts, ElementsAre(""));
}

TEST(Filter, SaysWhereItIsWrong) {
  EXPECT_THAT(Refusal("metrics.a < 'x'"), HasSubstr("at character 13"));
  EXPECT_THAT(Refusal("metrics.a < 1 or metrics.b > 2"), HasSubstr("'or'"));
  EXPECT_THAT(Refusal("params.a = 'x"), HasSubstr("has no end"));
  EXPECT_THAT(Refusal("params.a = x"), HasSubstr("a text in quotes"));
  EXPECT_THAT(Refusal("modell.a = 'x'"), HasSubstr("Invalid entity type 'modell'"));
  EXPECT_THAT(Refusal("attribute.x = 'x'"), HasSubstr("Invalid attribute key 'x'"));
  EXPECT_THAT(Refusal("dataset.x = 'x'"), HasSubstr("Invalid dataset key"));
  EXPECT_THAT(Refusal("params.a < 'x'"), HasSubstr("Invalid comparator"));
  EXPECT_THAT(Refusal("metrics.a LIKE 'x'"), HasSubstr("Invalid comparator"));
  EXPECT_THAT(Refusal("status IN ('x')"), HasSubstr("Only the 'run_id'"));
  EXPECT_THAT(Refusal("metrics.a > 1 and"), HasSubstr("it ends"));
  EXPECT_THAT(Refusal("metrics.a > 1; x"), HasSubstr("none of its language"));
  EXPECT_THAT(Refusal("metrics.a > 1", Subject::kExperiments), HasSubstr("attributes and tags"));
}

TEST(Filter, IsBounded) {
  EXPECT_THAT(Refusal(std::string(kMostFilterBytes + 1, ' ')), HasSubstr("bytes"));
  std::string many = "metrics.a > 1";
  for (size_t i = 0; i < kMostComparisons; ++i) many += " and metrics.a > 1";
  EXPECT_THAT(Refusal(many), HasSubstr("comparisons"));
  std::string list = "run_id IN (''";
  for (size_t i = 0; i < kMostOfList; ++i) list += ",''";
  EXPECT_THAT(Refusal(list + ")"), HasSubstr("a list has more"));
  const std::string pattern(kMostPatternBytes + 1, '%');
  EXPECT_THAT(Refusal("tags.a LIKE '" + pattern + "'"), HasSubstr("a pattern has more"));
}

TEST(Ordering, IsAscendingUnlessItSaysOtherwise) {
  EXPECT_TRUE(ParseOrdering("metrics.loss", Subject::kRuns)->ascending);
  EXPECT_TRUE(ParseOrdering("metrics.loss ASC", Subject::kRuns)->ascending);
  const auto down = ParseOrdering("params.`a b` desc", Subject::kRuns);
  ASSERT_TRUE(down.ok()) << down.status();
  EXPECT_FALSE(down->ascending);
  EXPECT_EQ(down->key, "a b");
  EXPECT_FALSE(ParseOrdering("metrics.loss sideways", Subject::kRuns).ok());
  EXPECT_FALSE(ParseOrdering("dataset.name", Subject::kRuns).ok());
  EXPECT_FALSE(ParseOrdering("", Subject::kRuns).ok());
}

}  // namespace
}  // namespace tutti::tracking
