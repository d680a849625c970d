// Shows what a job's ranks report: losses, scores and the like, by name.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "platform/client/connection/usage_view.h"
#include "platform/client/text/style.h"

namespace tutti::client {

// Returns the title line and a line for each metric: its last value, also "nan", "inf" or "-inf",
// the least and the greatest, how many were not finite, if any, and from which step on, the step of
// the last, and on a terminal the course of it. "" if there is none.
std::string MetricsTable(const JobMetricsView& metrics, const Screen& screen);

// A point of some metrics that were reported at one step.
struct ReportedStep {
  double step = 0, time = 0;  // NaN: not told
  std::vector<std::pair<std::string, double>> values;
};

// Finds in each answer of the service what the answer before did not have. Not thread-safe.
class NewReports {
 public:
  // Returns the points of `metrics.newest` that are new, by time, those of one step together. Where
  // more have come than an answer has, those that it has.
  std::vector<ReportedStep> In(const JobMetricsView& metrics);

 private:
  struct Last {
    double step = 0, time = 0, value = 0;
  };
  std::map<std::pair<std::string, std::string>, Last> last_;  // by run and name
};

// Returns "12:03:11  step 120  loss 0.25  accuracy 0.9"; the clock only where a time was told.
std::string ReportLine(const ReportedStep& report, absl::TimeZone time_zone);

}  // namespace tutti::client
