#include "spec/json/usage_sample.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

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

TEST(UsageSampleTest, SaysTheSameOfGpus) {
  UsageSample sample{.time = absl::FromUnixMillis(5)};
  EXPECT_EQ(ToJson(sample).find("gpus"), std::string::npos) << "as earlier versions have it";
  sample.gpus = {{.gpu = "3",
                  .use = 0.75,
                  .memory = 3e9,
                  .memory_total = 8e10,
                  .power = 312.5,
                  .temperature = 61},
                 {.gpu = "MIG-7f1a"}};
  const auto read = UsageSampleFromJson(ToJson(sample));
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->gpus.size(), 2);
  EXPECT_EQ(read->gpus[0].gpu, "3");
  EXPECT_EQ(read->gpus[0].use, 0.75F);
  EXPECT_EQ(read->gpus[0].memory, 3e9F);
  EXPECT_EQ(read->gpus[0].memory_total, 8e10F);
  EXPECT_EQ(read->gpus[0].power, 312.5F);
  EXPECT_EQ(read->gpus[0].temperature, 61);
  EXPECT_EQ(read->gpus[1].gpu, "MIG-7f1a");
  EXPECT_TRUE(std::isnan(read->gpus[1].use));
}

TEST(UsageSampleTest, PassesOverWhatIsNoGpu) {
  const auto read = UsageSampleFromJson(
      R"({"time": 5, "ranks": [], "gpus": [7, {}, {"gpu": 0}, {"gpu": "1", "use": "all"}]})");
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->gpus.size(), 1);
  EXPECT_EQ(read->gpus[0].gpu, "1");
  EXPECT_TRUE(std::isnan(read->gpus[0].use));
  for (const char* const gpus : {"7", "{}", "null"}) {
    const auto none =
        UsageSampleFromJson(absl::StrCat(R"({"time": 5, "ranks": [], "gpus": )", gpus, "}"));
    ASSERT_TRUE(none.ok()) << none.status();
    EXPECT_TRUE(none->gpus.empty()) << gpus;
  }
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
