// SweepTrials keeps the state of a sweep's trials and updates it as they report and end, so that
// deciding what follows takes no longer for the trials that ended long ago. Not thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "platform/flow/child.h"
#include "platform/flow/early_termination.h"
#include "platform/flow/metric_reports.h"
#include "platform/flow/sampling.h"
#include "spec/types/sweep.h"

namespace tutti::flow {

class SweepTrials {
 public:
  explicit SweepTrials(const spec::Sweep& sweep)
      : maximize_(sweep.maximize),
        observes_(sweep.sampling == spec::Sampling::kBayesian),
        policy_(sweep) {}

  // Notes that trial number size() + 1 has started.
  void Start(Values values);
  // Takes what it has reported since the last call; with `anew` all that it has reported so far,
  // in the place of what was taken.
  void Report(int number, const MetricReports& reports, bool anew = false);
  // Notes that the trial has ended, and has reported all. `reason` is of its last event.
  void End(int number, ChildState state, const std::string& reason);

  int size() const { return static_cast<int>(values_.size()); }
  const std::set<int>& active() const { return active_; }
  int completed() const { return completed_; }
  int failed() const { return failed_; }
  int stopped() const { return stopped_; }
  int ended() const { return completed_ + failed_ + stopped_; }
  int first_failure() const { return first_failure_; }  // its number; 0: none
  const std::string& reason_of_first_failure() const { return reason_of_first_failure_; }
  // Returns the completed trial with the best metric; the first one, if several are equally good;
  // 0: none.
  int best() const { return best_; }
  double best_metric() const { return best_metric_; }

  // Returns what the trial was given.
  const Values& values(int number) const { return *values_.at(number - 1); }
  // Returns the best that the trial has reported so far; nothing: none.
  std::optional<double> metric(int number) const { return metrics_.at(number - 1); }
  // Returns those that the sweep's early termination policy stops now, by number.
  std::vector<TrialStop> TrialsToStop() const { return policy_.TrialsToStop(); }
  // Returns the values and metrics of the completed trials, by number; none where the sampling does
  // not ask for them.
  std::vector<Observation> Observations() const;
  // Return what is for advice: metrics that were reported instead, and a line that reports
  // nothing.
  const std::set<std::string>& other_metrics() const { return other_metrics_; }
  const std::string& odd_line() const { return odd_line_; }

 private:
  bool IsBetter(double metric, double than) const {
    return maximize_ ? metric > than : metric < than;
  }
  void Compare(int number, double metric);

  const bool maximize_, observes_;
  std::vector<std::shared_ptr<const Values>> values_;  // by number; the first is number 1
  std::vector<std::optional<double>> metrics_;         // the same
  StoppingPolicy policy_;
  std::set<int> active_, observed_;
  int completed_ = 0, failed_ = 0, stopped_ = 0, first_failure_ = 0, best_ = 0;
  double best_metric_ = 0;
  std::string reason_of_first_failure_;
  std::set<std::string> other_metrics_;
  std::string odd_line_;
  int odd_trial_ = 0;  // whose line that is
};

}  // namespace tutti::flow
