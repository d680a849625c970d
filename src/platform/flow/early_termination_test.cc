#include "platform/flow/early_termination.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::flow {
namespace {

using spec::EarlyTermination;
using spec::Sweep;
using Kind = spec::EarlyTermination::Kind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Sweep With(EarlyTermination policy, bool maximize = true) {
  Sweep sweep;
  sweep.metric = "auc";
  sweep.maximize = maximize;
  sweep.early_termination = policy;
  return sweep;
}

std::vector<int> Stopped(const Sweep& sweep, const std::vector<TrialReports>& trials) {
  std::vector<int> numbers;
  for (const TrialStop& stop : TrialsToStop(sweep, trials)) numbers.push_back(stop.number);
  return numbers;
}

// Azure ML's own example: with a best of 0.8 and a slack factor of 0.2 all below 0.8 / 1.2 goes.
TEST(Bandit, StopsWhatIsBelowTheBestBySlackFactor) {
  const Sweep sweep = With({.kind = Kind::kBandit, .slack_factor = 0.2});
  EXPECT_THAT(Stopped(sweep, {{1, true, {0.8}}, {2, true, {0.66}}, {3, true, {0.67}}}),
              ElementsAre(2));
  EXPECT_THAT(TrialsToStop(sweep, {{1, true, {0.8}}, {2, true, {0.66}}})[0].reason,
              HasSubstr("stopped early by bandit at report 1: its best auc 0.66"));
}

TEST(Bandit, TakesAnAmountAndBothGoals) {
  const Sweep amount = With({.kind = Kind::kBandit, .slack_amount = 0.2});
  EXPECT_THAT(Stopped(amount, {{1, true, {0.8}}, {2, true, {0.59}}, {3, true, {0.61}}}),
              ElementsAre(2));
  const Sweep least = With({.kind = Kind::kBandit, .slack_factor = 0.5}, false);
  EXPECT_THAT(Stopped(least, {{1, true, {2.0}}, {2, true, {3.1}}, {3, true, {2.9}}}),
              ElementsAre(2));
  const Sweep negative = With({.kind = Kind::kBandit, .slack_factor = 1});
  EXPECT_THAT(Stopped(negative, {{1, true, {-1}}, {2, true, {-3}}, {3, true, {-1.5}}}),
              ElementsAre(2));
}

TEST(Bandit, JudgesATrialByItsBestAndByWhatOthersHadByThen) {
  const Sweep sweep = With({.kind = Kind::kBandit, .slack_factor = 0.1});
  EXPECT_THAT(Stopped(sweep, {{1, true, {0.5, 0.9}}, {2, true, {0.5}}}), IsEmpty());
  EXPECT_THAT(Stopped(sweep, {{1, true, {0.5, 0.9}}, {2, true, {0.88, 0.1}}}), IsEmpty());
  EXPECT_THAT(Stopped(sweep, {{1, false, {0.5, 0.9}}, {2, true, {0.5, 0.6}}}), ElementsAre(2));
}

// 0.8 sixteen times has, summed and divided, an average above 0.8.
TEST(MedianStopping, SparesATrialWhoseReportsAreAllEqual) {
  const Sweep sweep = With({.kind = Kind::kMedianStopping});
  const ReportSeries constant(std::vector<double>(16, 0.8));
  const ReportSeries better(std::vector<double>(16, 0.9));
  const ReportSeries worse(std::vector<double>(16, 0.1));
  EXPECT_THAT(Stopped(sweep, {{1, true, better}, {2, true, constant}, {3, false, worse}}),
              IsEmpty());
}

TEST(Policies, LookAtTheirIntervalsFromTheDelayOn) {
  const Sweep sweep = With({.kind = Kind::kBandit,
                            .evaluation_interval = 2,
                            .delay_evaluation = 5,
                            .slack_factor = 0.1});
  const auto stopped = [&](int reports) {
    return !Stopped(sweep, {{1, true, ReportSeries(std::vector<double>(9, 1.0))},
                            {2, true, ReportSeries(std::vector<double>(reports, 0.1))}})
                .empty();
  };
  EXPECT_FALSE(stopped(1));
  EXPECT_FALSE(stopped(5));  // 4 is the last multiple of 2, and before the delay
  EXPECT_TRUE(stopped(6));
  EXPECT_TRUE(stopped(7));
  EXPECT_THAT(Stopped(With({}), {{1, true, {1}}, {2, true, {0}}}), IsEmpty());
}

// The averages over the first two reports are 0.75, 0.35 and 0.15: the median is 0.35.
TEST(MedianStopping, StopsWhoseBestIsWorseThanTheMedianOfTheAverages) {
  const Sweep sweep = With({.kind = Kind::kMedianStopping});
  EXPECT_THAT(
      Stopped(sweep, {{1, false, {0.7, 0.8}}, {2, true, {0.3, 0.4}}, {3, true, {0.1, 0.2}}}),
      ElementsAre(3));
  EXPECT_THAT(Stopped(sweep, {{1, true, {0.7}}}), IsEmpty());
  EXPECT_THAT(Stopped(With({.kind = Kind::kMedianStopping}, false),
                      {{1, true, {0.7}}, {2, true, {0.3}}, {3, true, {0.1}}}),
              ElementsAre(1));
}

TEST(TruncationSelection, StopsTheWorstShareOfThoseThatHaveComeAsFar) {
  const Sweep sweep = With({.kind = Kind::kTruncationSelection, .truncation_percentage = 20});
  std::vector<TrialReports> trials;
  for (int i = 1; i <= 10; ++i) trials.push_back({i, true, {0.1 * i}});
  EXPECT_THAT(Stopped(sweep, trials), ElementsAre(1, 2));
  trials.resize(4);  // 20 % of 4 is none
  EXPECT_THAT(Stopped(sweep, trials), IsEmpty());
  trials.push_back({5, false, {0.01}});  // has ended; is compared with
  EXPECT_THAT(Stopped(sweep, trials), IsEmpty());
}

}  // namespace
}  // namespace tutti::flow
