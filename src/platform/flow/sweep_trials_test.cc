// Covers: early_termination.cc.
#include "platform/flow/sweep_trials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace tutti::flow {
namespace {
using ::testing::ElementsAre;
using ::testing::IsEmpty;

spec::Sweep Maximizing(bool maximize, spec::Sampling sampling = spec::Sampling::kRandom) {
  spec::Sweep sweep;
  sweep.maximize = maximize;
  sweep.sampling = sampling;
  return sweep;
}

// If several metrics are equal, the first trial is the best, even if it ends last.
TEST(SweepTrials, CountsAndFindsTheBestInWhateverOrderTrialsEnd) {
  for (const bool maximize : {false, true}) {
    std::minstd_rand random(7);
    for (int round = 0; round < 200; ++round) {
      std::vector<double> metrics(1 + random() % 6);
      for (double& metric : metrics) metric = static_cast<double>(random() % 4) - 2;
      std::vector<int> order(metrics.size());
      std::iota(order.begin(), order.end(), 1);
      std::shuffle(order.begin(), order.end(), random);
      SweepTrials trials(Maximizing(maximize));
      for (size_t i = 0; i < metrics.size(); ++i) trials.Start({"1"});
      for (const int number : order) {
        trials.Report(number, {.values = {metrics[number - 1]}});
        trials.End(number, ChildState::kCompleted, "");
      }
      const auto best = maximize ? std::max_element(metrics.begin(), metrics.end())
                                 : std::min_element(metrics.begin(), metrics.end());
      EXPECT_EQ(trials.best(), best - metrics.begin() + 1);
      EXPECT_EQ(trials.best_metric(), *best);
      EXPECT_EQ(trials.completed(), static_cast<int>(metrics.size()));
      EXPECT_THAT(trials.active(), IsEmpty());
    }
  }
}

TEST(SweepTrials, TellsTheFirstFailureByNumberAndWhatTrialsReportedInstead) {
  SweepTrials trials(Maximizing(false));
  for (int i = 0; i < 4; ++i) trials.Start({"1"});
  trials.Report(4, {.other_names = {"b"}, .odd_line = "fourth"});
  trials.Report(2, {.other_names = {"a"}, .odd_line = "second"});
  trials.End(3, ChildState::kFailed, "third");
  trials.End(2, ChildState::kFailed, "second");
  trials.End(4, ChildState::kCanceled, "");
  EXPECT_EQ(trials.first_failure(), 2);
  EXPECT_EQ(trials.reason_of_first_failure(), "second");
  EXPECT_EQ(trials.ended(), 3);
  EXPECT_THAT(trials.active(), ElementsAre(1));
  EXPECT_THAT(trials.other_metrics(), ElementsAre("a", "b"));
  EXPECT_EQ(trials.odd_line(), "second");
}

TEST(SweepTrials, ObservesWhereTheSamplingLearns) {
  SweepTrials trials(Maximizing(true, spec::Sampling::kBayesian));
  for (const char* value : {"1", "2", "3"}) trials.Start({value});
  trials.Report(3, {.values = {1, 5, 2}});
  trials.End(3, ChildState::kCompleted, "");
  trials.End(1, ChildState::kCompleted, "");  // has reported nothing
  const auto seen = trials.Observations();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_THAT(*seen[0].values, ElementsAre("3"));
  EXPECT_EQ(seen[0].metric, 5);
}

TEST(ReportSeries, AnswersForEachBeginningAsACountWould) {
  std::minstd_rand random(3);
  std::vector<double> values;
  for (int i = 0; i < 200; ++i) values.push_back(static_cast<double>(random() % 1000) / 7 - 50);
  const ReportSeries series(values);
  double highest = values[0], lowest = values[0], sum = 0;
  for (size_t count = 1; count <= values.size(); ++count) {
    highest = std::max(highest, values[count - 1]);
    lowest = std::min(lowest, values[count - 1]);
    sum += values[count - 1];
    EXPECT_EQ(series.Highest(count), highest);
    EXPECT_EQ(series.Lowest(count), lowest);
    EXPECT_EQ(series.Sum(count), sum);  // to the last bit: added up in the same order
  }
}

}  // namespace
}  // namespace tutti::flow
