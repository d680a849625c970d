// Reads the values of one metric from what a job writes: the metrics file (docs/formats/metrics.md)
// and MLflow's file store. Pure functions, safe on any bytes.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tutti::flow {

struct MetricReports {
  std::vector<double> values;         // of the metric, in order
  std::set<std::string> other_names;  // of the numbers that came instead, at most 20
  std::string odd_line;               // the first line that reports nothing at all, cut off
};

// Returns whether a field of a line tells where in its course the line belongs, or counts what
// nobody draws or optimises.
bool IsBookkeeping(absl::string_view name);

// Reads the reports: each line of JSON that has a number under the metric's name is a report, and
// so is each {"event": "metric", "name": NAME, "value": number}. Lines that are something else are
// passed over; events of other kinds are none of the odd ones.
MetricReports ReportsInMetricsFile(absl::string_view text, absl::string_view metric);

// Returns a metric's file of MLflow's file store: "TIME VALUE STEP", a line for each log_metric.
std::vector<double> ReportsInMlflowFile(absl::string_view text);

}  // namespace tutti::flow
