#include "platform/flow/sweep_trials.h"

#include <utility>

namespace tutti::flow {

void SweepTrials::Start(Values values) {
  values_.push_back(std::make_shared<const Values>(std::move(values)));
  reports_.push_back({.number = size() + 1, .active = true});
  active_.insert(size());
}

void SweepTrials::Report(int number, const MetricReports& reports, bool anew) {
  ReportSeries& series = reports_.at(number - 1).reports;
  if (anew) series = ReportSeries();
  series.Append(reports.values);
  other_metrics_.insert(reports.other_names.begin(), reports.other_names.end());
  const bool is_first = odd_trial_ == 0 || number < odd_trial_;
  if (reports.odd_line.empty() || !is_first) return;
  odd_line_ = reports.odd_line;
  odd_trial_ = number;
}

void SweepTrials::End(int number, ChildState state, const std::string& reason) {
  reports_.at(number - 1).active = false;
  active_.erase(number);
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
      if (!reports_[number - 1].reports.empty()) Compare(number);
  }
}

double SweepTrials::BestOf(int number) const {
  const ReportSeries& reports = reports_[number - 1].reports;
  return maximize_ ? reports.Highest(reports.size()) : reports.Lowest(reports.size());
}

void SweepTrials::Compare(int number) {
  if (observes_) observed_.insert(number);
  const double metric = BestOf(number);
  const bool is_better = maximize_ ? metric > best_metric_ : metric < best_metric_;
  const bool is_first_of_equal = metric == best_metric_ && number < best_;
  if (best_ != 0 && !is_better && !is_first_of_equal) return;
  best_ = number;
  best_metric_ = metric;
}

std::vector<Observation> SweepTrials::Observations() const {
  std::vector<Observation> seen;
  seen.reserve(observed_.size());
  for (const int number : observed_) seen.push_back({values_[number - 1], BestOf(number)});
  return seen;
}

}  // namespace tutti::flow
