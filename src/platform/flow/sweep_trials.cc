#include "platform/flow/sweep_trials.h"

#include <utility>

namespace tutti::flow {

void SweepTrials::Start(Values values) {
  values_.push_back(std::make_shared<const Values>(std::move(values)));
  metrics_.emplace_back();
  active_.insert(size());
}

void SweepTrials::Report(int number, const MetricReports& reports, bool anew) {
  std::optional<double>& best = metrics_.at(number - 1);
  if (anew) {
    best.reset();
    policy_.Retract(number);
  }
  for (const double value : reports.values) {
    if (!best || IsBetter(value, *best)) best = value;
  }
  policy_.Report(number, reports.values);
  other_metrics_.insert(reports.other_names.begin(), reports.other_names.end());
  const bool is_first = odd_trial_ == 0 || number < odd_trial_;
  if (reports.odd_line.empty() || !is_first) return;
  odd_line_ = reports.odd_line;
  odd_trial_ = number;
}

void SweepTrials::End(int number, ChildState state, const std::string& reason) {
  active_.erase(number);
  policy_.End(number);
  switch (state) {
    case ChildState::kActive:
      return;
    case ChildState::kCanceled:
      ++stopped_;
      return;
    case ChildState::kFailed:
      ++failed_;
      if (first_failure_ != 0 && first_failure_ < number) return;
      first_failure_ = number;
      reason_of_first_failure_ = reason;
      return;
    case ChildState::kCompleted:
      ++completed_;
      if (const auto metric = metrics_.at(number - 1)) Compare(number, *metric);
  }
}

void SweepTrials::Compare(int number, double metric) {
  if (observes_) observed_.insert(number);
  const bool is_first_of_equal = metric == best_metric_ && number < best_;
  if (best_ != 0 && !IsBetter(metric, best_metric_) && !is_first_of_equal) return;
  best_ = number;
  best_metric_ = metric;
}

std::vector<Observation> SweepTrials::Observations() const {
  std::vector<Observation> seen;
  seen.reserve(observed_.size());
  for (const int number : observed_) seen.push_back({values_[number - 1], *metrics_[number - 1]});
  return seen;
}

}  // namespace tutti::flow
