#include "platform/mlflow/store_follower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"

namespace tutti::mlflow {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class StoreFollowerTest : public testing::Test {
 protected:
  StoreFollowerTest() {
    for (const char* run : {"a", "b"}) {
      Write(fs::path("0") / run / "meta.yaml", "status: 1\n");
    }
    Write("0/meta.yaml", "name: Default\n");
    Write("0/b/tags/mlflow.parentRunId", "a");
  }
  void Write(const fs::path& file, const std::string& text) const {
    fs::create_directories((store_ / file).parent_path());
    std::ofstream(store_ / file, std::ios::app) << text;
  }
  static std::vector<json> Parsed(const std::string& lines) {
    std::vector<json> values;
    for (const absl::string_view line : absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
      values.push_back(json::parse(line));
    }
    return values;
  }

  const base::TemporaryDirectory folder_;
  const fs::path store_ = folder_.path() / "mlruns";
};

TEST_F(StoreFollowerTest, EachValueIsHandedOutOnce) {
  StoreFollower follower(store_);
  EXPECT_EQ(follower.NewLines(), "");
  Write("0/a/metrics/loss", "1700000000500 0.5 1\n1700000001000 0.2");  // half a line
  Write("0/b/metrics/fold/loss", "1700000000000 2 0\n");
  Write("0/a/metrics/system/cpu", "1700000000000 1 0\n");
  const std::vector<json> first = Parsed(follower.NewLines());
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[0], json::parse(R"({"event": "metric", "name": "loss", "value": 0.5, "step": 1,
                                      "time": 1700000000.5, "run": "a"})"));
  EXPECT_EQ(first[1], json::parse(R"({"event": "metric", "name": "fold/loss", "value": 2,
                                      "step": 0, "time": 1700000000.0, "run": "b",
                                      "nested": true})"));
  EXPECT_EQ(follower.NewLines(), "");
  Write("0/a/metrics/loss", "5 2\n");
  const std::vector<json> second = Parsed(follower.NewLines());
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0]["value"], 0.25);
  EXPECT_EQ(second[0]["step"], 2);
}

TEST_F(StoreFollowerTest, WhatIsNotFiniteIsNamedAsPythonDoes) {
  StoreFollower follower(store_);
  Write("0/a/metrics/loss", "1000 inf 1\n2000 -inf 2\n3000 nan 3\n");
  EXPECT_EQ(follower.NewLines(),
            R"({"event":"metric","name":"loss","value":Infinity,"step":1,"time":1.0,"run":"a"})"
            "\n"
            R"({"event":"metric","name":"loss","value":-Infinity,"step":2,"time":2.0,"run":"a"})"
            "\n"
            R"({"event":"metric","name":"loss","value":NaN,"step":3,"time":3.0,"run":"a"})"
            "\n");
}

TEST_F(StoreFollowerTest, AStoreWithMuchInItIsFollowedByItsNewestValues) {
  StoreFollower follower(store_, /*most_bytes=*/200);
  Write("0/a/metrics/loss", "1 3 1\n2 2 2\n3 1 3\n");
  EXPECT_EQ(Parsed(follower.NewLines()).size(), 3u);
  Write("0/a/metrics/loss", "4 0.5 4\n5 0.25 5\n");
  const std::vector<json> newest = Parsed(follower.NewLines());
  ASSERT_EQ(newest.size(), 1u);
  EXPECT_EQ(newest[0]["value"], 0.25);
  std::string last = "x";
  for (int step = 6; step < 40; ++step) {
    Write("0/a/metrics/loss", absl::StrCat(step, " 1 ", step, "\n"));
    last = follower.NewLines();
  }
  EXPECT_EQ(last, "") << "beyond twice as many bytes";
}

TEST_F(StoreFollowerTest, WhatAnEarlierAttemptHasLoggedIsPassedOver) {
  Write("0/a/metrics/loss", "1 3 1\n2 2 2\n");
  StoreFollower follower(store_, /*most_bytes=*/50);
  follower.SkipWhatIsThere();
  EXPECT_EQ(follower.NewLines(), "");
  Write("0/a/metrics/loss", "3 1 3\n");
  EXPECT_EQ(Parsed(follower.NewLines()).size(), 1u);
}

TEST_F(StoreFollowerTest, WhatIsNoValueIsPassedOver) {
  StoreFollower follower(store_);
  Write("0/a/metrics/loss", "what\n\n7 0.5 seven\n8 0.25 8\n");
  const std::vector<json> values = Parsed(follower.NewLines());
  ASSERT_EQ(values.size(), 1u);
  EXPECT_EQ(values[0]["step"], 8);
}

}  // namespace
}  // namespace tutti::mlflow
