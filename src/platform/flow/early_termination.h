// Decides which trials are stopped because others do better, by Azure ML's three policies. Pure
// functions of what all trials have reported; one report of the metric is one interval.
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
#pragma once

#include <string>
#include <vector>

#include "platform/flow/report_series.h"
#include "spec/types/sweep.h"

namespace tutti::flow {

struct TrialReports {
  int number = 0;
  bool active = false;   // others are compared with, and not stopped
  ReportSeries reports;  // of the metric, in order
};

struct TrialStop {
  int number = 0;
  std::string reason;  // one line
};

std::vector<TrialStop> TrialsToStop(const spec::Sweep& sweep,
                                    const std::vector<TrialReports>& trials);

}  // namespace tutti::flow
