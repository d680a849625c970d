#include "platform/client/jobs/usage_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_split.h"
#include "platform/client/jobs/use.h"
#include "platform/client/text/columns.h"

namespace tutti::client {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

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

TEST(UsageTextTest, ShowsGpusWhereThereAreAny) {
  EXPECT_THAT(*UsageText(Usage(true), {}), AllOf(Not(HasSubstr("GPU")), Not(HasSubstr("Temp"))));
  json usage = json::parse(Usage(true));
  for (const char* const resolution : {"recent", "whole"}) {
    json& series = usage["nodes"][0][resolution];
    series["gpu_use"] = Column(1, 1.5);
    series["gpu_memory"] = Column(1e9, 6e10);
    series["gpu_memory_total"] = Column(16e10, 16e10);
    series["gpu_power"] = Column(100, 412);
    series["gpu_temperature"] = Column(30, 61);
  }
  const auto text = UsageText(usage.dump(), {});
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(*text, AllOf(HasSubstr("GPUs"), HasSubstr("GPU memory"), HasSubstr("Power"),
                           HasSubstr("1.50"), HasSubstr("60.0 GB of 160 GB"), HasSubstr("412 W"),
                           HasSubstr("Temp"), HasSubstr("61 °C")));
  for (const int width : {24, 40, 60, 80, 100, 200}) {
    const auto drawn = UsageText(usage.dump(), {.is_terminal = true, .width = width});
    ASSERT_TRUE(drawn.ok());
    EXPECT_EQ(drawn->find("1.50") != std::string::npos, width >= 40) << width << "\n" << *drawn;
    for (const absl::string_view line : absl::StrSplit(*drawn, '\n')) {
      EXPECT_LE(Columns(line), width) << line;
    }
  }
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

// A node of which all samples are among the newest.
NodeUsageView ShortLived(UsageSeries samples) {
  NodeUsageView node{.recent = samples, .whole = std::move(samples)};
  node.recent.samples.assign(node.recent.cpu.size(), 1);
  node.whole.samples = node.recent.samples;
  return node;
}

TEST(UseTextTest, IsOfAllNodesOverTheWholeLife) {
  JobUsageView usage;
  usage.nodes = {ShortLived({.cpu = {0.5, 1, 1},
                             .memory = {1e9, 2e9, 1e9},
                             .disk_read = {3e6, 0, 0},
                             .disk_write = {3e6, 0, 0},
                             .net_receive = {0, 2e6, 1e6},
                             .net_send = {0, 2e6, 1e6}}),
                 ShortLived({.cpu = {1, 0.8}, .memory = {2e9, 2e9}})};  // came later
  EXPECT_EQ(UseText(usage, 2, {}),
            "Use\n"
            "  cpu     mean 1.43 of 2 cores, peak 2.00\n"
            "  memory  mean 2.67 GB, peak 4.00 GB\n"
            "  disk    mean 2.00 MB/s, peak 6.00 MB/s\n"
            "  network mean 2.00 MB/s, peak 4.00 MB/s\n");
  EXPECT_EQ(UseText(usage, 0, {.is_terminal = true, .width = 80}),
            "Use\n"
            "  cpu     ▃██           mean 1.43 cores, peak 2.00\n"
            "  memory  ▃█▇           mean 2.67 GB, peak 4.00 GB\n"
            "  disk    █▁▁           mean 2.00 MB/s, peak 6.00 MB/s\n"
            "  network ▁█▅           mean 2.00 MB/s, peak 4.00 MB/s\n");
}

TEST(UseTextTest, TakesSpansWhereTheNewestSamplesAreNotTheWholeLife) {
  NodeUsageView node;
  node.whole = {.cpu = {4, 1}, .samples = {30, 10}};
  node.recent = {.cpu = {2, 0}, .samples = {1, 1}};
  JobUsageView usage{.nodes = {node}};
  EXPECT_THAT(UseText(usage, 1, {.is_terminal = true, .width = 80}),
              AllOf(HasSubstr("█▃ "), HasSubstr("mean 3.25 of 1 core, peak 4.00\n")));
  usage.nodes[0].recent.cpu = {7, 0};  // within a span
  EXPECT_THAT(UseText(usage, 1, {}), HasSubstr("peak 7.00\n"));
  usage.nodes[0].whole.samples.clear();  // not known
  EXPECT_THAT(UseText(usage, 1, {}), HasSubstr("mean 2.50 of 1 core"));
}

TEST(UseTextTest, SaysOfAJobThatRunsWhatItUsesNow) {
  JobUsageView usage{.live = true, .nodes = {ShortLived({.cpu = {1, 0.5}})}};
  EXPECT_EQ(UseText(usage, 1, {}), "Use\n  cpu     now 0.50, mean 0.75 of 1 core, peak 1.00\n");
  usage.nodes[0].age = 20;
  EXPECT_THAT(UseText(usage, 1, {}), HasSubstr("now ~0.50, mean 0.75 of"));
  usage.nodes[0].age = 60;
  EXPECT_THAT(UseText(usage, 1, {}), HasSubstr("  cpu     mean 0.75 of"));
}

TEST(UseTextTest, HasGpusWhereThereAreAny) {
  JobUsageView usage{
      .nodes = {ShortLived({.cpu = {1, 1}, .gpu_use = {0.5, 1.5}, .gpu_memory = {1e9, 6e10}})}};
  EXPECT_THAT(UseText(usage, 1, {}), ::testing::EndsWith("  gpus    mean 1.00 busy, peak 1.50\n"
                                                         "  gpu mem mean 30.5 GB, peak 60.0 GB\n"));
}

TEST(UseTextTest, HasWhatIsWrongAndNothingOfNoSamples) {
  JobUsageView usage{.problems = {"the memory of n1 will not suffice\x1b[2J"}};
  EXPECT_EQ(UseText(usage, 1, {.is_terminal = true, .width = 80}), "");
  usage.nodes = {ShortLived({.cpu = {Use::kUnknown}})};
  EXPECT_EQ(UseText(usage, 1, {}), "");
  usage.nodes = {ShortLived({.cpu = {1}})};
  EXPECT_THAT(UseText(usage, 1, {}),
              ::testing::EndsWith("\n  problem the memory of n1 will not suffice?[2J\n"));
}

TEST(RanksTextTest, NamesTheRanksThatHaveEnded) {
  JobUsageView usage;
  EXPECT_THAT(RanksText(usage), HasSubstr("not known: the service is of a version"));
  usage.ranks.emplace();
  EXPECT_EQ(RanksText(usage), "") << "a pipeline has none";
  const std::string time = "2026-11-30T12:03:11.5Z";
  usage.ranks = {{.rank = 0, .state = "running", .since = time},
                 {.rank = 1, .state = "ended", .since = time, .code = 4},
                 {.rank = 2, .state = "not_started"},
                 {.rank = 3, .state = "unknown"},
                 {.rank = 4, .state = "ended", .signal = 9}};
  const std::string local = absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::FromUnixSeconds(1796040191),
                                             absl::LocalTimeZone());
  EXPECT_EQ(RanksText(usage), "1 running, 1 not started, 2 ended (rank 1, exit code 4, " + local +
                                  "; rank 4, signal 9), 1 not known");
}

TEST(RanksTextTest, IsShortForManyThatHaveEnded) {
  JobUsageView usage{.ranks = std::vector<RankStateView>(6, {.state = "ended"})};
  EXPECT_EQ(RanksText(usage), "6 ended with exit code 0");
  usage.ranks->at(0).code = 1;
  EXPECT_EQ(RanksText(usage),
            "6 ended (rank 0, exit code 1; rank 0, exit code 0; rank 0, exit code 0; and 3 more)");
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
