#include "platform/client/jobs/usage_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_split.h"
#include "platform/client/text/columns.h"

namespace tutti::client {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

json Column(double first, double last) { return json::array({first, nullptr, last}); }

json SeriesOf(double scale) {
  const json rank = {{"rank", 0}, {"cpu", Column(1, 2 * scale)}, {"memory", Column(1e9, 2e9)}};
  return {{"cpu", Column(1, 2 * scale)},     {"memory", Column(1e9, 2e9 * scale)},
          {"memory_left", Column(5e9, 4e9)}, {"disk_read", Column(0, 1e6)},
          {"net_send", Column(0, 5e6)},      {"ranks", json::array({rank})}};
}

std::string Usage(bool live, std::vector<std::string> problems = {}) {
  return json({{"live", live},
               {"problems", problems},
               {"nodes", json::array({{{"node", 0},
                                       {"name", live ? "n1" : ""},
                                       {"recent", SeriesOf(1)},
                                       {"whole", SeriesOf(2)}}})}})
      .dump();
}

TEST(UsageTextTest, ShowsWhatIsNowOfAJobThatRuns) {
  const auto text = UsageText(Usage(true), {});
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(*text, AllOf(HasSubstr("n1"), HasSubstr("  rank 0"), HasSubstr("2.00"),
                           HasSubstr("2.00 GB"), HasSubstr("4.00 GB"), HasSubstr("1.00 MB/s"),
                           HasSubstr("5.00 MB/s"), Not(HasSubstr("█"))));
}

TEST(UsageTextTest, ShowsMeansAndTheMostOfOneThatHasEnded) {
  const auto text = UsageText(Usage(false), {});
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(*text, AllOf(HasSubstr("node 0"), HasSubstr("2.50"), HasSubstr("4.00 GB"),
                           HasSubstr("500 kB/s")));
}

TEST(UsageTextTest, WeighsMeansByTheSamplesOfEachValue) {
  json usage = json::parse(Usage(false));
  json& whole = usage["nodes"][0]["whole"];
  whole["samples"] = {30, 30, 2};
  whole["cpu"] = {1, 1, 63};
  whole["ranks"][0]["cpu"] = {2, 2, 126};
  const auto text = UsageText(usage.dump(), {});
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(*text, AllOf(HasSubstr("3.00"), HasSubstr("6.00")));
}

TEST(UsageTextTest, ShowsNothingAsOfNowThatIsOld) {
  json usage = json::parse(Usage(true));
  usage["nodes"][0]["age"] = 312.5;
  const auto text = UsageText(usage.dump(), {});
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(*text, AllOf(HasSubstr("n1 has told nothing for 312 s\n"), Not(HasSubstr("2.00"))));
}

TEST(UsageTextTest, DrawsOnATerminalAndFitsIt) {
  for (const int width : {24, 40, 60, 80, 100, 200}) {
    const auto text = UsageText(Usage(true), {.is_terminal = true, .width = width});
    ASSERT_TRUE(text.ok());
    EXPECT_EQ(text->find("█") != std::string::npos, width >= 40) << width << "\n" << *text;
    EXPECT_THAT(*text, HasSubstr("2.00")) << width;
    for (const absl::string_view line : absl::StrSplit(*text, '\n')) {
      EXPECT_LE(Columns(line), width) << line;
    }
  }
}

TEST(UsageFactsTest, AreOfAllNodes) {
  JobUsageView usage{.live = true};
  NodeUsageView node;
  node.recent = {.cpu = {1, 3}, .memory = {2e9, 2e9}};
  node.whole = node.recent;
  usage.nodes = {node, node};
  usage.nodes[1].recent.cpu = {1};  // came later
  const Screen terminal = {.is_terminal = true, .width = 80};
  EXPECT_THAT(UsageFacts(usage, terminal),
              ElementsAre(Pair("Cores", "▃█ 4.00"), Pair("Memory", "██ 4.00 GB")));
  EXPECT_THAT(UsageFacts(usage, {}), ElementsAre(Pair("Cores", "4.00"), Pair("Memory", "4.00 GB")));
  usage.live = false;
  EXPECT_THAT(UsageFacts(usage, {}),
              ElementsAre(Pair("Cores", "4.00 on average"), Pair("Memory", "4.00 GB at most")));
  EXPECT_THAT(UsageFacts({}, terminal), ::testing::IsEmpty());
}

TEST(UsageTextTest, SaysWhatIsWrongFirst) {
  EXPECT_THAT(*UsageText(Usage(true, {"the memory of n1 will not suffice\x1b[2J"}), {}),
              ::testing::StartsWith("Problem  the memory of n1 will not suffice?[2J\n"));
}

TEST(UsageTextTest, SaysThatThereIsNothing) {
  EXPECT_THAT(*UsageText(R"({"live": true, "problems": [], "nodes": []})", {}),
              HasSubstr("nothing is known yet"));
  EXPECT_THAT(*UsageText(R"({"live": false, "problems": [], "nodes": []})", {}),
              HasSubstr("ran for less than two seconds"));
  EXPECT_TRUE(absl::IsInternal(UsageText("[]", {}).status()));
  EXPECT_TRUE(UsageText(R"({"nodes": [{}]})", {}).ok());
}

}  // namespace
}  // namespace tutti::client
