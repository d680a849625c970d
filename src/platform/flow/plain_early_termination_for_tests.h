// The policies of early_termination.h by their definition: each trial is compared with all others,
// whose reports are read from the first. What StoppingPolicy decides must be this.
#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "platform/flow/early_termination.h"
#include "spec/types/enum_names.h"

namespace tutti::flow {

struct TrialReports {
  int number = 0;
  bool active = false;   // others are compared with, and not stopped
  ReportSeries reports;  // of the metric, in order
};

// Everything is turned so that greater is better.
class PlainJudge {
 public:
  PlainJudge(const spec::Sweep& sweep, const std::vector<TrialReports>& trials)
      : sweep_(sweep), policy_(sweep.early_termination), trials_(trials) {}

  std::vector<TrialStop> Judged() const {
    std::vector<TrialStop> stops;
    for (const TrialReports& trial : trials_) {
      const int interval = LastInterval(trial);
      if (!trial.active || interval == 0) continue;
      std::string why = policy_.kind == Kind::kBandit           ? Bandit(trial, interval)
                        : policy_.kind == Kind::kMedianStopping ? Median(trial, interval)
                                                                : Truncation(trial, interval);
      if (why.empty()) continue;
      stops.push_back({trial.number, absl::StrCat("stopped early by ", Name(policy_.kind),
                                                  " at report ", interval, ": ", why)});
    }
    return stops;
  }

 private:
  using Kind = spec::EarlyTermination::Kind;

  // The last at which the policy looks; 0 before the first.
  int LastInterval(const TrialReports& trial) const {
    const int reports = static_cast<int>(trial.reports.size());
    const int interval = reports - reports % policy_.evaluation_interval;
    return interval >= std::max(policy_.delay_evaluation, 1) ? interval : 0;
  }

  double Turned(double value) const { return sweep_.maximize ? value : -value; }
  std::string Shown(double turned) const {
    return absl::StrCat(sweep_.metric, " ", absl::StrFormat("%.6g", Turned(turned)));
  }

  static size_t CountUntil(const TrialReports& trial, int interval) {
    return std::min(static_cast<size_t>(interval), trial.reports.size());
  }

  double BestUntil(const TrialReports& trial, int interval) const {
    const size_t count = CountUntil(trial, interval);
    if (count == 0) return -std::numeric_limits<double>::infinity();
    return sweep_.maximize ? trial.reports.Highest(count) : -trial.reports.Lowest(count);
  }

  // The worst that a trial may have beside a best of `best`.
  double Threshold(double best) const {
    if (policy_.slack_amount > 0) return best - policy_.slack_amount;
    const double slack = 1 + policy_.slack_factor;
    return best > 0 ? best / slack : best * slack;
  }

  std::string Bandit(const TrialReports& trial, int interval) const {
    double best = -std::numeric_limits<double>::infinity();
    for (const TrialReports& other : trials_) best = std::max(best, BestUntil(other, interval));
    const double own = BestUntil(trial, interval);
    if (!(own < Threshold(best))) return "";
    return absl::StrCat("its best ", Shown(own), " is beyond the slack of the best, ", Shown(best));
  }

  std::string Median(const TrialReports& trial, int interval) const {
    std::vector<double> averages;
    for (const TrialReports& other : trials_) {
      const size_t count = CountUntil(other, interval);
      if (count == 0) continue;
      const double average = Turned(other.reports.Sum(count)) / static_cast<double>(count);
      // A sum is rounded: the average of equal reports must not be above each of them.
      averages.push_back(std::min(average, BestUntil(other, interval)));
    }
    std::sort(averages.begin(), averages.end());
    const size_t n = averages.size();
    const double median =
        n % 2 == 1 ? averages[n / 2] : (averages[n / 2 - 1] + averages[n / 2]) / 2;
    const double own = BestUntil(trial, interval);
    if (!(own < median)) return "";
    return absl::StrCat("its best ", Shown(own), " is worse than the median of the averages, ",
                        Shown(median));
  }

  std::string Truncation(const TrialReports& trial, int interval) const {
    const auto value = [&](const TrialReports& of) { return Turned(of.reports[interval - 1]); };
    std::vector<double> values;
    for (const TrialReports& other : trials_) {
      if (CountUntil(other, interval) == static_cast<size_t>(interval)) {
        values.push_back(value(other));
      }
    }
    const size_t worst = values.size() * policy_.truncation_percentage / 100;
    if (worst == 0) return "";
    std::sort(values.begin(), values.end());
    // Ties with the best of the worst are spared if there are more of them than are to go.
    const bool is_worst = value(trial) < values[std::min(worst, values.size() - 1)];
    if (!is_worst) return "";
    return absl::StrCat("its ", Shown(value(trial)), " is among the worst ", worst, " of ",
                        values.size());
  }

  const spec::Sweep& sweep_;
  const spec::EarlyTermination& policy_;
  const std::vector<TrialReports>& trials_;
};

inline std::vector<TrialStop> PlainTrialsToStop(const spec::Sweep& sweep,
                                                const std::vector<TrialReports>& trials) {
  if (sweep.early_termination.kind == spec::EarlyTermination::Kind::kNone) return {};
  return PlainJudge(sweep, trials).Judged();
}

}  // namespace tutti::flow
