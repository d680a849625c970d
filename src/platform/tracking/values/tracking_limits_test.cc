#include "platform/tracking/values/tracking_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace tutti::tracking {
namespace {

using ::testing::HasSubstr;

TEST(Limits, TakesMlflowsKeysAndNoOthers) {
  for (const char* key :
       {"loss", "a/b", "system/cpu utilization", "val:loss", "a.b-c_d", "größe"}) {
    EXPECT_TRUE(CheckKey("metric", key).ok()) << key;
  }
  for (const char* key : {"", "/a", "a/", "a//b", "../a", "a/./b", "a\nb", "a;b", "a*"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckKey("metric", key))) << key;
  }
  EXPECT_FALSE(CheckKey("metric", absl::string_view("a\0b", 3)).ok());
}

TEST(Limits, CountsCharactersNotBytes) {
  std::string key;
  for (size_t i = 0; i < kMostKeyLength; ++i) key += "ä";
  EXPECT_TRUE(CheckKey("tag", key).ok());
  EXPECT_THAT(CheckKey("tag", key + "ä").message(), HasSubstr("250 characters"));
  std::string value;
  for (size_t i = 0; i < kMostParamLength + 1; ++i) value += "€";
  EXPECT_EQ(CutParam(value).size(), 3 * kMostParamLength);
  EXPECT_EQ(CutTag("short"), "short");
}

TEST(Limits, ABatchHasSoManyOfEach) {
  Batch batch;
  batch.metrics.assign(kMostMetricsOfBatch, {"m", {}});
  EXPECT_TRUE(CheckBatch(batch).ok());
  batch.tags.push_back({"t", ""});
  EXPECT_THAT(CheckBatch(batch).message(), HasSubstr("at most 1000 metrics, params, and tags"));
  batch.tags.clear();
  batch.metrics.push_back({"m", {}});
  EXPECT_THAT(CheckBatch(batch).message(), HasSubstr("at most 1000 metrics. Got 1001"));
  batch.metrics.clear();
  for (int i = 0; i <= 100; ++i) batch.params.push_back({absl::StrCat("p", i), ""});
  EXPECT_THAT(CheckBatch(batch).message(), HasSubstr("at most 100 params"));
}

TEST(Limits, AParamHasOneValueInABatch) {
  Batch batch{.metrics = {}, .params = {{"p", "1"}, {"p", "1"}}, .tags = {}};
  EXPECT_TRUE(CheckBatch(batch).ok());
  batch.params.push_back({"p", "2"});
  EXPECT_THAT(CheckBatch(batch).message(), HasSubstr("Duplicate parameter keys"));
}

}  // namespace
}  // namespace tutti::tracking
