#include "platform/service/usage/usage_problems.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace tutti::service {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);
constexpr int kSeconds = 300;

// Four ranks on n1, whose samples `change` makes from a quiet one; `second` goes to kSeconds.
NodeHistory HistoryOf(const std::function<void(int second, spec::UsageSample& sample)>& change) {
  NodeHistory history(0, 4);
  for (int second = 0; second <= kSeconds; ++second) {
    spec::UsageSample sample{.time = kNow - absl::Seconds(kSeconds - second)};
    sample.memory = 1e9;
    sample.memory_left = 1e10;
    for (int rank = 0; rank < 4; ++rank) {
      sample.ranks.push_back({.rank = rank, .cpu = 1, .memory = 2.5e8, .cpu_wait = 0.01F});
    }
    change(second, sample);
    history.Add(sample);
  }
  return history;
}

std::vector<std::string> ProblemsOf(const NodeHistory& history, absl::Time now = kNow) {
  UsageProblems problems(now);
  problems.Add("n1", history);
  return problems.Lines();
}

void Grow(int second, spec::UsageSample& sample) {
  const auto grown = 1e7F * static_cast<float>(second);
  sample.memory += grown;
  sample.memory_left = 4e9F - grown;
  sample.ranks[2].memory += grown;
}

TEST(UsageProblemsTest, AreNoneOfAJobThatIsWell) {
  EXPECT_THAT(ProblemsOf(HistoryOf([](int, auto&) {})), IsEmpty());
}

TEST(UsageProblemsTest, SayThatMemoryWillNotSufficeAndWhoTakesIt) {
  EXPECT_THAT(
      ProblemsOf(HistoryOf(Grow)),
      ElementsAre(::testing::AllOf(HasSubstr("the memory of n1 will not suffice: 954 MiB are left"),
                                   HasSubstr("rank 2 has grown by 572 MiB a minute"),
                                   HasSubstr("used up in 1 min"))));
}

TEST(UsageProblemsTest, AreSilentOfMemoryThatLastsOrThatOthersTake) {
  EXPECT_THAT(ProblemsOf(HistoryOf([](int second, auto& sample) {
                Grow(second, sample);
                sample.memory_left += 1e12F;
              })),
              IsEmpty());
  EXPECT_THAT(ProblemsOf(HistoryOf([](int second, auto& sample) {
                sample.memory_left = 4e9F - 1e7F * static_cast<float>(second);
              })),
              IsEmpty());
  EXPECT_THAT(ProblemsOf(HistoryOf([](int second, auto& sample) {
                Grow(std::min(second, 120), sample);  // and stays
              })),
              IsEmpty());
}

TEST(UsageProblemsTest, NameARankThatHasNoProcessorWhileTheOthersDo) {
  EXPECT_THAT(ProblemsOf(HistoryOf([](int, auto& sample) { sample.ranks[3].cpu_wait = 0.7F; })),
              ElementsAre("rank 3 on n1 is slower than the others: 70 % of the last minute it "
                          "could have run and had no processor (half of the ranks: at most 1 %)"));
}

TEST(UsageProblemsTest, NameNoneWhereAllWait) {
  EXPECT_THAT(ProblemsOf(HistoryOf([](int, auto& sample) {
                for (spec::RankUsage& rank : sample.ranks) rank.cpu_wait = 0.7F;
              })),
              IsEmpty());
}

TEST(UsageProblemsTest, NameRanksThatAreStoppedOrWaitForADisk) {
  const auto history = HistoryOf([](int second, auto& sample) {
    sample.ranks[0].stopped = second > kSeconds - 12;
    sample.ranks[1].blocked = second > kSeconds - 40;
    sample.ranks[2].stopped = second % 5 != 0;
  });
  EXPECT_THAT(ProblemsOf(history),
              ElementsAre("rank 0 on n1 has been stopped for 11s, as by SIGSTOP or a debugger: the "
                          "others wait for it",
                          "rank 1 on n1 has waited for a disk, a file server or a device for 39s"));
}

TEST(UsageProblemsTest, MeasureToTheLastSample) {
  const auto history =
      HistoryOf([](int second, auto& sample) { sample.ranks[0].stopped = second > kSeconds - 8; });
  EXPECT_THAT(ProblemsOf(history, kNow + absl::Seconds(20)), IsEmpty()) << "it may go on by now";
}

TEST(UsageProblemsTest, AreSilentOfAStateThatWasSeenNowAndThen) {
  const auto seen_each = [](int seconds) {
    NodeHistory history(0, 1);
    for (int second = 0; second <= 60; second += seconds) {
      spec::UsageSample sample{.time = kNow - absl::Seconds(60 - second)};
      sample.ranks = {{.rank = 0, .stopped = true}};
      history.Add(sample);
    }
    return ProblemsOf(history);
  };
  EXPECT_THAT(seen_each(3).size(), 1);
  EXPECT_THAT(seen_each(6), IsEmpty());
}

// Reports each second of a step, whose parts have so many seconds: `data`, and of all others 0.3.
std::vector<ReportedMetric> ReportsOf(const std::function<double(int second)>& data,
                                      int seconds = kSeconds) {
  std::vector<ReportedMetric> reported;
  for (const char* const part :
       {"loss", "data", "forward", "backward", "communication", "optimizer", "other"}) {
    ReportedMetric& series = reported.emplace_back();
    series.name = part;
    for (int second = 0; second <= seconds; ++second) {
      const double time = absl::ToUnixSeconds(kNow) - seconds + second;
      const double value = series.name == "data"      ? data(second)
                           : series.name == "forward" ? 0.3
                                                      : 0;
      series.newest.push_back({.value = value, .step = 10 * second, .time = time});
      if (series.newest.size() > MetricSeries::kMostNewest) {
        series.newest.erase(series.newest.begin());
      }
    }
  }
  return reported;
}

TEST(DataWaitTest, SaysThatARankWaitsHalfOfTheTimeAndHowManyGpusAreBusy) {
  const auto reported = ReportsOf([](int) { return 0.7; });
  EXPECT_EQ(DataWait(reported, 0.4, kNow),
            "rank 0 has waited for data for 70 % of the last 5 minutes (GPUs busy: 0.40): give it "
            "more cores and workers, or shards (tutti-data pack) on a disk or in the node's cache");
  EXPECT_THAT(*DataWait(reported, std::nullopt, kNow), HasSubstr("70 % of the last 5 minutes: "));
}

TEST(UsageProblemsTest, SayHowManyGpusWereBusyInTheLastMinutes) {
  UsageProblems problems(kNow);
  problems.Add("n1", HistoryOf([](int, auto&) {}));
  EXPECT_EQ(problems.gpus_busy(), std::nullopt);
  const auto half_of_the_time = HistoryOf([](int second, auto& sample) {
    sample.gpus = {{.gpu = "0", .use = second % 2 == 0 ? 1.0F : 0}, {.gpu = "1", .use = 0.25}};
    if (second == 0) sample.gpus.clear();
  });
  problems.Add("n2", half_of_the_time);
  problems.Add("n3", half_of_the_time);
  EXPECT_NEAR(problems.gpus_busy().value_or(0), 2 * 0.75, 1e-3);
}

TEST(DataWaitTest, IsSilentOfLess) {
  EXPECT_EQ(DataWait(ReportsOf([](int) { return 0.25; }), 0.4, kNow), std::nullopt);
  // For a minute of five, as after an evaluation.
  EXPECT_EQ(DataWait(ReportsOf([](int second) { return second > 240 ? 0.7 : 0; }), 0.4, kNow),
            std::nullopt);
}

TEST(DataWaitTest, WeighsReportsByTheirSteps) {
  auto reported = ReportsOf([](int) { return 0.25; });
  // One line of as many steps as all the others.
  for (ReportedMetric& series : reported) {
    series.newest.back().step = 6000;
    if (series.name == "data") series.newest.back().value = 0.9;
  }
  EXPECT_THAT(*DataWait(reported, {}, kNow), HasSubstr("67 % of the last"));
}

TEST(DataWaitTest, IsSilentWhereTheReportsDoNotShowIt) {
  const auto waits = [](int) { return 0.7; };
  EXPECT_EQ(DataWait({}, {}, kNow), std::nullopt);
  EXPECT_EQ(DataWait(ReportsOf(waits, 200), {}, kNow), std::nullopt) << "of too short a time";
  EXPECT_EQ(DataWait(ReportsOf(waits), {}, kNow + absl::Minutes(1)), std::nullopt) << "old ones";
  auto reported = ReportsOf(waits);
  reported[2].name = "fore";
  EXPECT_EQ(DataWait(reported, {}, kNow), std::nullopt) << "they are no parts of a step";
  reported = ReportsOf(waits);
  for (ReportedMetric& series : reported) series.run = "a1";
  EXPECT_EQ(DataWait(reported, {}, kNow), std::nullopt) << "they are MLflow's";
  reported = ReportsOf(waits);
  for (ReportedMetric& series : reported) series.newest[100].step.reset();
  EXPECT_EQ(DataWait(reported, {}, kNow), std::nullopt) << "one is of nobody knows how many steps";
}

TEST(UsageProblemsTest, AreSilentWhereNothingWasHeardForAWhile) {
  EXPECT_THAT(ProblemsOf(HistoryOf(Grow), kNow + absl::Minutes(1)), IsEmpty());
}

}  // namespace
}  // namespace tutti::service
