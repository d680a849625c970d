// Covers: sorted_values.cc, running_best.h.
#include "platform/flow/early_termination.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"
#include "platform/flow/plain_early_termination_for_tests.h"
#include "platform/flow/running_best.h"
#include "platform/flow/sorted_values.h"

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

std::vector<double> ValuesOf(const ReportSeries& reports) {
  std::vector<double> values;
  for (size_t i = 0; i < reports.size(); ++i) values.push_back(reports[i]);
  return values;
}

std::vector<TrialStop> Stops(const Sweep& sweep, const std::vector<TrialReports>& trials) {
  StoppingPolicy policy(sweep);
  for (const TrialReports& trial : trials) {
    policy.Report(trial.number, ValuesOf(trial.reports));
    if (!trial.active) policy.End(trial.number);
  }
  return policy.TrialsToStop();
}

std::vector<int> Stopped(const Sweep& sweep, const std::vector<TrialReports>& trials) {
  std::vector<int> numbers;
  for (const TrialStop& stop : Stops(sweep, trials)) numbers.push_back(stop.number);
  return numbers;
}

// Azure ML's own example: with a best of 0.8 and a slack factor of 0.2 all below 0.8 / 1.2 goes.
TEST(Bandit, StopsWhatIsBelowTheBestBySlackFactor) {
  const Sweep sweep = With({.kind = Kind::kBandit, .slack_factor = 0.2});
  EXPECT_THAT(Stopped(sweep, {{1, true, {0.8}}, {2, true, {0.66}}, {3, true, {0.67}}}),
              ElementsAre(2));
  EXPECT_THAT(Stops(sweep, {{1, true, {0.8}}, {2, true, {0.66}}})[0].reason,
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

TEST(SortedValues, SelectsFromTwoAsFromAllOfThem) {
  std::minstd_rand random(11);
  for (int round = 0; round < 500; ++round) {
    SortedValues a, b;
    std::vector<double> all, to_a;
    for (int i = static_cast<int>(random() % 8); i > 0; --i) to_a.push_back(random() % 5);
    a.Add(to_a);
    all = to_a;
    for (int i = static_cast<int>(random() % 8); i > 0; --i) {
      all.push_back(random() % 5);
      b.Add(all.back());
    }
    if (to_a.size() > 1) {
      a.Remove(to_a.front());
      all.erase(all.begin());
    }
    std::sort(all.begin(), all.end());
    for (size_t rank = 0; rank < all.size(); ++rank) EXPECT_EQ(Select(a, b, rank), all[rank]);
    if (all.empty()) continue;
    const size_t half = all.size() / 2;
    EXPECT_EQ(Median(a, b), all.size() % 2 == 1 ? all[half] : (all[half - 1] + all[half]) / 2);
  }
}

TEST(RunningBest, IsTheBestOfEachBeginningOfAll) {
  std::minstd_rand random(12);
  for (int round = 0; round < 200; ++round) {
    RunningBest best;
    std::vector<double> plain(10, -std::numeric_limits<double>::infinity());
    for (int i = 0; i < 30; ++i) {
      const size_t n = 1 + random() % 10;
      const double value = random() % 20;
      best.Add(n, value);
      for (size_t k = n; k <= plain.size(); ++k) plain[k - 1] = std::max(plain[k - 1], value);
      for (size_t k = 1; k <= plain.size(); ++k) ASSERT_EQ(best.Until(k), plain[k - 1]);
    }
    EXPECT_EQ(best.Until(1000), plain.back());
  }
}

// A sweep whose trials start, report a few times at once, report anew and end as chance has it.
class History {
 public:
  History(const Sweep& sweep, unsigned seed) : sweep_(sweep), policy_(sweep), random_(seed) {}

  void TakeAStep() {
    std::vector<TrialReports*> active;
    for (TrialReports& trial : trials_) {
      if (trial.active) active.push_back(&trial);
    }
    const unsigned what = random_() % 20;
    if (active.empty() || what < 3) {
      trials_.push_back({static_cast<int>(trials_.size()) + 1, true, {}});
      return;
    }
    TrialReports& trial = *active[random_() % active.size()];
    if (what == 3) {
      trial.active = false;
      policy_.End(trial.number);
      return;
    }
    std::vector<double> values;
    for (unsigned i = random_() % 4; i > 0; --i) values.push_back(Value());
    if (what == 4) {
      trial.reports = ReportSeries();
      policy_.Retract(trial.number);
    }
    trial.reports.Append(values);
    policy_.Report(trial.number, values);
  }

  // Whether both stop the same trials, for the same reasons; how many these are is added up.
  std::string Difference() {
    const std::string plain = Text(PlainTrialsToStop(sweep_, trials_));
    const std::string kept = Text(policy_.TrialsToStop());
    return plain == kept ? "" : absl::StrCat("by definition:\n", plain, "decided:\n", kept);
  }
  int stops() const { return stops_; }

 private:
  // Often one of a few, so that several are equal.
  double Value() {
    if (random_() % 2 == 0) return static_cast<double>(random_() % 5) - 2;
    return std::uniform_real_distribution<double>(-2, 2)(random_);
  }
  std::string Text(const std::vector<TrialStop>& stops) {
    std::string text;
    for (const TrialStop& stop : stops) absl::StrAppend(&text, stop.number, " ", stop.reason, "\n");
    stops_ += static_cast<int>(stops.size());
    return text;
  }

  const Sweep sweep_;
  StoppingPolicy policy_;
  std::vector<TrialReports> trials_;
  std::mt19937 random_;
  int stops_ = 0;
};

TEST(Policies, DecideAsTheirDefinitionDoesAfterEachStepOfAnyHistory) {
  const std::vector<EarlyTermination> policies = {
      {.kind = Kind::kBandit, .slack_factor = 0.3},
      {.kind = Kind::kBandit, .evaluation_interval = 2, .slack_amount = 0.7},
      {.kind = Kind::kMedianStopping},
      {.kind = Kind::kMedianStopping, .evaluation_interval = 3, .delay_evaluation = 4},
      {.kind = Kind::kTruncationSelection, .truncation_percentage = 40},
      {.kind = Kind::kTruncationSelection, .evaluation_interval = 2, .truncation_percentage = 70},
      {.kind = Kind::kNone}};
  for (const EarlyTermination& policy : policies) {
    int stops = 0;
    for (unsigned seed = 0; seed < 60; ++seed) {
      History history(With(policy, seed % 2 == 0), seed);
      for (int step = 0; step < 150; ++step) {
        history.TakeAStep();
        // A decision is not made after each report.
        if (seed % 3 == 0 && step % 5 != 0) continue;
        ASSERT_EQ(history.Difference(), "") << "seed " << seed << ", step " << step;
      }
      stops += history.stops();
    }
    EXPECT_EQ(stops > 100, policy.kind != Kind::kNone) << stops;
  }
}

}  // namespace
}  // namespace tutti::flow
