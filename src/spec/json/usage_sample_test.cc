#include "spec/json/usage_sample.h"

#include <gtest/gtest.h>

namespace tutti::spec {
namespace {

TEST(UsageSampleTest, SaysTheSameAfterALine) {
  UsageSample sample{.time = absl::FromUnixMillis(1234567890123)};
  sample.cpu = 1.25;
  sample.memory_left = 3e9;
  sample.ranks = {{.rank = 3, .cpu = 0.5, .memory = 4096, .stopped = true}, {.rank = 4}};
  const std::string line = ToJson(sample);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto read = UsageSampleFromJson(line);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->time, sample.time);
  EXPECT_EQ(read->cpu, 1.25F);
  EXPECT_EQ(read->memory_left, 3e9F);
  EXPECT_TRUE(std::isnan(read->net_send));
  ASSERT_EQ(read->ranks.size(), 2);
  EXPECT_EQ(read->ranks[0].rank, 3);
  EXPECT_EQ(read->ranks[0].memory, 4096);
  EXPECT_TRUE(read->ranks[0].stopped);
  EXPECT_FALSE(read->ranks[0].blocked);
  EXPECT_TRUE(std::isnan(read->ranks[1].cpu));
}

TEST(UsageSampleTest, PassesOverWhatItDoesNotKnow) {
  const auto read = UsageSampleFromJson(
      R"({"time": 5, "ranks": [{"rank": 0, "gpu": [1]}], "cpu": "much", "memory": -1})");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(std::isnan(read->cpu));
  EXPECT_TRUE(std::isnan(read->memory));
  const auto some = UsageSampleFromJson(
      R"({"time": 5, "ranks": [{"rank": -2}, 7, {}, {"rank": 1e99}, {"rank": 3}]})");
  ASSERT_TRUE(some.ok()) << some.status();
  ASSERT_EQ(some->ranks.size(), 1);
  EXPECT_EQ(some->ranks[0].rank, 3);
}

TEST(UsageSampleTest, RefusesWhatIsNoSample) {
  for (const char* line : {"", "[]", "{}", R"({"time": "now", "ranks": []})", R"({"time": 1})",
                           R"({"time": 18446744073709551615, "ranks": []})"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(UsageSampleFromJson(line).status())) << line;
  }
}

}  // namespace
}  // namespace tutti::spec
