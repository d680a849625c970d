// StoppingPolicy decides which trials are stopped because others do better, by Azure ML's three
// policies; one report of the metric is one interval.
//
// A trial is judged at the last interval that it has reached and at which the policy looks
// (multiples of evaluation_interval, from delay_evaluation on), against what the others had
// reported by then. "Best" is the highest where the goal is to maximize, else the lowest.
//
//   bandit                stopped if its best is worse than the best of all by more than the slack:
//                         slack_factor f: below best / (1 + f), or above best * (1 + f) to minimize
//                         slack_amount a: below best - a, or above best + a
//   median_stopping       stopped if its best is worse than the median of all trials' averages
//   truncation_selection  stopped if its last value is among the worst truncation_percentage of
//                         those trials' that have come as far
//
// What is compared with is kept by interval as reports come: bandit the best so far, the others a
// number of each trial, in order. So a decision goes over the trials that have not ended, however
// many have and whatever they have reported. Not thread-safe.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "spec/types/sweep.h"

namespace tutti::flow {

// ReportSeries holds what a trial has reported of its sweep's metric, in order, and answers for its
// first n reports their highest, lowest and sum, in the same time however long the series is.
class ReportSeries {
 public:
  ReportSeries() = default;
  ReportSeries(std::initializer_list<double> values) : ReportSeries(std::vector<double>(values)) {}
  explicit ReportSeries(const std::vector<double>& values) { Append(values); }

  // Adds reports behind those that are there, in the time that these alone take.
  void Append(const std::vector<double>& values);

  size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  double operator[](size_t i) const { return values_[i]; }

  // Return values of the first `count` reports; it is at least 1 and at most size().
  double Highest(size_t count) const { return Of(count).highest; }
  double Lowest(size_t count) const { return Of(count).lowest; }
  double Sum(size_t count) const { return Of(count).sum; }

 private:
  struct Summary {
    double highest = -std::numeric_limits<double>::infinity();
    double lowest = std::numeric_limits<double>::infinity();
    double sum = 0;
    void Add(double value);
  };
  Summary Of(size_t count) const;

  std::vector<double> values_;
  Summary all_;
  std::vector<Summary> blocks_;  // of the first kBlock reports, twice as many, …
};

struct TrialStop {
  int number = 0;
  std::string reason;  // one line
};

// ActiveReports are what trials that have not ended have reported, by their numbers; it leaves out
// those that have reported nothing.
using ActiveReports = std::map<int, ReportSeries>;

class StoppingRule;

class StoppingPolicy {
 public:
  explicit StoppingPolicy(const spec::Sweep& sweep);
  ~StoppingPolicy();
  StoppingPolicy(StoppingPolicy&&) noexcept;

  // Takes what a trial that has not ended has reported since the last call.
  void Report(int number, const std::vector<double>& values);
  // Forgets what a trial that has not ended has reported.
  void Retract(int number);
  // Notes that a trial has ended: it is not stopped, and others are still compared with it.
  void End(int number);

  // Returns the trials that are to be stopped now, by their numbers.
  std::vector<TrialStop> TrialsToStop() const;

 private:
  // Returns the last interval at which the policy looks; 0 before the first.
  size_t LastInterval(const ReportSeries& reports) const;

  const spec::EarlyTermination policy_;
  ActiveReports active_;
  std::unique_ptr<StoppingRule> rule_;  // null: no trial is stopped
};

}  // namespace tutti::flow
