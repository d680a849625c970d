// Parses what a job's processes use, as GET /v1/jobs/J/usage answers it (docs/formats/usage.md),
// and what they report, as GET /v1/jobs/J/metrics does. Takes any text, as views.h does.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::client {

// Columns over time, the oldest value first; NaN: not known. Empty where the answer has none of
// that name.
struct UsageSeries {
  std::vector<double> cpu, memory, memory_left, disk_read, disk_write, net_receive, net_send,
      samples;
  std::vector<double> gpu_use, gpu_memory, gpu_memory_total, gpu_power, gpu_temperature;
};

struct RankUsageView {
  int rank = 0;
  UsageSeries recent, whole;
};

struct NodeUsageView {
  int number = 0;
  std::string name;  // empty: the job has ended
  double age = 0;    // seconds since the newest sample; 0 where there is none
  UsageSeries recent, whole;
  std::vector<RankUsageView> ranks;
};

// How one of a job's processes stands.
struct RankStateView {
  int rank = 0;
  std::string state;  // not_started, running, ended, unknown, or what a later service says
  std::string since;  // RFC 3339; empty: not told
  int code = 0, signal = 0;
};

struct JobUsageView {
  bool live = false;                                // it has its nodes
  std::optional<std::vector<RankStateView>> ranks;  // nothing: a service of before does not tell
  std::vector<std::string> problems;
  std::vector<NodeUsageView> nodes;
};

absl::StatusOr<JobUsageView> ParseUsage(absl::string_view json);

// Points of a metric, the oldest first; NaN: there is none, or, of a course, it is not finite.
struct MetricPoints {
  std::vector<double> step, time, value;
};

struct MetricSeriesView {
  std::string name, run;
  int rank = 0;
  double last = 0, step = 0, min = 0, max = 0;  // NaN likewise
  std::string last_not_finite;                  // "nan", "inf" or "-inf", if `last` is that
  double not_finite = 0;                        // how many values are not finite
  double first_not_finite = 0;                  // the step of the first of these; NaN: not told
  MetricPoints course, newest;
};

struct JobMetricsView {
  bool live = false;  // the job has not ended
  std::vector<MetricSeriesView> metrics;
};

absl::StatusOr<JobMetricsView> ParseJobMetrics(absl::string_view json);

}  // namespace tutti::client
