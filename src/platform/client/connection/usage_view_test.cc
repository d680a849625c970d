#include "platform/client/connection/usage_view.h"

#include <gtest/gtest.h>

#include <cmath>

#include "absl/status/status.h"

namespace tutti::client {
namespace {

TEST(UsageViewTest, ReadsNodesAndTheirRanks) {
  const auto usage = ParseUsage(R"({
    "job": "a", "live": true, "problems": ["rank 1 on n1 has been stopped"],
    "nodes": [{"node": 2, "name": "n1", "age": 1.5,
               "recent": {"cpu": [1, null], "ranks": [{"rank": 4, "cpu": [0.5, 1]}]},
               "whole": {"cpu": [3], "samples": [30], "memory_left": [7],
                         "ranks": [{"rank": 4, "memory": [9]}, {"rank": 5}]}}]})");
  ASSERT_TRUE(usage.ok()) << usage.status();
  EXPECT_TRUE(usage->live);
  EXPECT_EQ(usage->problems, std::vector<std::string>{"rank 1 on n1 has been stopped"});
  ASSERT_EQ(usage->nodes.size(), 1);
  const NodeUsageView& node = usage->nodes[0];
  EXPECT_EQ(node.number, 2);
  EXPECT_EQ(node.name, "n1");
  EXPECT_EQ(node.age, 1.5);
  ASSERT_EQ(node.recent.cpu.size(), 2);
  EXPECT_EQ(node.recent.cpu[0], 1);
  EXPECT_TRUE(std::isnan(node.recent.cpu[1]));
  EXPECT_EQ(node.whole.memory_left, std::vector<double>{7});
  EXPECT_EQ(node.whole.samples, std::vector<double>{30});
  EXPECT_TRUE(node.whole.disk_read.empty());
  ASSERT_EQ(node.ranks.size(), 2);
  EXPECT_EQ(node.ranks[0].rank, 4);
  EXPECT_EQ(node.ranks[0].recent.cpu, (std::vector<double>{0.5, 1}));
  EXPECT_EQ(node.ranks[0].whole.memory, std::vector<double>{9});
  EXPECT_EQ(node.ranks[1].rank, 5);
  EXPECT_TRUE(node.ranks[1].recent.cpu.empty());
}

TEST(UsageViewTest, ReadsHowRanksStand) {
  const auto usage = ParseUsage(
      R"({"nodes": [], "ranks": [{"rank": 0, "node": "n1", "state": "running", "since": "x"},
          {"rank": 1, "state": "ended", "code": 3}, {"rank": 2, "state": "ended", "signal": 9},
          7]})");
  ASSERT_TRUE(usage.ok() && usage->ranks.has_value());
  ASSERT_EQ(usage->ranks->size(), 3);
  EXPECT_EQ(usage->ranks->at(0).state, "running");
  EXPECT_EQ(usage->ranks->at(0).since, "x");
  EXPECT_EQ(usage->ranks->at(1).code, 3);
  EXPECT_EQ(usage->ranks->at(2).rank, 2);
  EXPECT_EQ(usage->ranks->at(2).signal, 9);
  EXPECT_FALSE(ParseUsage(R"({"nodes": []})")->ranks.has_value()) << "of a service of before";
}

TEST(UsageViewTest, TakesWhatIsMissingOrOfAnotherTypeForNothing) {
  const auto usage = ParseUsage(
      R"({"live": 1, "problems": {"a": 2}, "nodes": [7, {"name": 3, "age": null, "recent": [1],
          "whole": {"cpu": "x", "ranks": [null, {"rank": "b", "cpu": {}}]}}]})");
  ASSERT_TRUE(usage.ok()) << usage.status();
  EXPECT_FALSE(usage->live);
  EXPECT_TRUE(usage->problems.empty());
  ASSERT_EQ(usage->nodes.size(), 1);
  EXPECT_EQ(usage->nodes[0].name, "");
  EXPECT_EQ(usage->nodes[0].age, 0);
  EXPECT_TRUE(usage->nodes[0].whole.cpu.empty());
  ASSERT_EQ(usage->nodes[0].ranks.size(), 1);
  EXPECT_TRUE(usage->nodes[0].ranks[0].whole.cpu.empty());
}

TEST(UsageViewTest, RefusesWhatIsNoUsage) {
  for (const char* text : {"", "[]", "{}", R"({"nodes": 1})", R"({"nodes": {}})"}) {
    EXPECT_TRUE(absl::IsInternal(ParseUsage(text).status())) << text;
  }
}

}  // namespace
}  // namespace tutti::client
