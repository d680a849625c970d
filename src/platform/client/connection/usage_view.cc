#include "platform/client/connection/usage_view.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

namespace tutti::client {
namespace {

using nlohmann::json;

const json& At(const json& object, const char* key) {
  static const json nothing = json::object();
  const auto found = object.find(key);
  return found != object.end() && found->is_structured() ? *found : nothing;
}

double NumberAt(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

std::string TextAt(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::vector<double> ColumnAt(const json& series, const char* name) {
  std::vector<double> values;
  const json& column = At(series, name);
  if (!column.is_array()) return values;
  for (const json& value : column) {
    values.push_back(value.is_number() ? value.get<double>()
                                       : std::numeric_limits<double>::quiet_NaN());
  }
  return values;
}

UsageSeries UsageSeriesOf(const json& series) {
  return {.cpu = ColumnAt(series, "cpu"),
          .memory = ColumnAt(series, "memory"),
          .memory_left = ColumnAt(series, "memory_left"),
          .disk_read = ColumnAt(series, "disk_read"),
          .disk_write = ColumnAt(series, "disk_write"),
          .net_receive = ColumnAt(series, "net_receive"),
          .net_send = ColumnAt(series, "net_send"),
          .samples = ColumnAt(series, "samples"),
          .gpu_use = ColumnAt(series, "gpu_use"),
          .gpu_memory = ColumnAt(series, "gpu_memory"),
          .gpu_memory_total = ColumnAt(series, "gpu_memory_total"),
          .gpu_power = ColumnAt(series, "gpu_power"),
          .gpu_temperature = ColumnAt(series, "gpu_temperature")};
}

bool IsLive(const json& answer) {
  const auto live = answer.find("live");
  return live != answer.end() && live->is_boolean() && live->get<bool>();
}

double NumberOrNan(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>()
                                                     : std::numeric_limits<double>::quiet_NaN();
}

// Returns columns of one length. Only `newest` has texts for what is not finite.
MetricPoints MetricPointsOf(const json& object) {
  MetricPoints points = {.step = ColumnAt(object, "step"),
                         .time = ColumnAt(object, "time"),
                         .value = ColumnAt(object, "value")};
  points.step.resize(points.value.size(), std::numeric_limits<double>::quiet_NaN());
  points.time.resize(points.value.size(), std::numeric_limits<double>::quiet_NaN());
  const json& not_finite = At(object, "not_finite");
  if (!not_finite.is_array()) return points;
  for (size_t i = 0; i < std::min(points.value.size(), not_finite.size()); ++i) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (not_finite[i] == "inf") points.value[i] = kInfinity;
    if (not_finite[i] == "-inf") points.value[i] = -kInfinity;
  }
  return points;
}

NodeUsageView NodeUsageOf(const json& object) {
  NodeUsageView node;
  node.number = static_cast<int>(NumberAt(object, "node"));
  node.name = TextAt(object, "name");
  node.age = NumberAt(object, "age");
  const json& recent = At(object, "recent");
  const json& whole = At(object, "whole");
  node.recent = UsageSeriesOf(recent);
  node.whole = UsageSeriesOf(whole);
  const json& recent_ranks = At(recent, "ranks");
  const json& whole_ranks = At(whole, "ranks");
  if (!whole_ranks.is_array()) return node;
  for (size_t i = 0; i < whole_ranks.size(); ++i) {  // both have the same ranks
    if (!whole_ranks[i].is_object()) continue;
    RankUsageView& rank = node.ranks.emplace_back();
    rank.rank = static_cast<int>(NumberAt(whole_ranks[i], "rank"));
    rank.whole = UsageSeriesOf(whole_ranks[i]);
    const bool has_recent =
        recent_ranks.is_array() && i < recent_ranks.size() && recent_ranks[i].is_object();
    if (has_recent) rank.recent = UsageSeriesOf(recent_ranks[i]);
  }
  return node;
}

std::vector<RankStateView> RankStatesOf(const json& answer) {
  std::vector<RankStateView> ranks;
  for (const json& rank : answer) {
    if (!rank.is_object()) continue;
    ranks.push_back({.rank = static_cast<int>(NumberAt(rank, "rank")),
                     .state = TextAt(rank, "state"),
                     .since = TextAt(rank, "since"),
                     .code = static_cast<int>(NumberAt(rank, "code")),
                     .signal = static_cast<int>(NumberAt(rank, "signal"))});
  }
  return ranks;
}

}  // namespace

absl::StatusOr<JobUsageView> ParseUsage(absl::string_view text) {
  const json usage = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!usage.is_object() || !At(usage, "nodes").is_array()) {
    return absl::InternalError("the service's answer is no usage of a job");
  }
  JobUsageView view;
  view.live = IsLive(usage);
  for (const json& line : At(usage, "problems")) {
    if (line.is_string()) view.problems.push_back(line.get<std::string>());
  }
  for (const json& node : usage["nodes"]) {
    if (node.is_object()) view.nodes.push_back(NodeUsageOf(node));
  }
  if (At(usage, "ranks").is_array()) view.ranks = RankStatesOf(usage["ranks"]);
  return view;
}

absl::StatusOr<JobMetricsView> ParseJobMetrics(absl::string_view text) {
  const json answer = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object() || !At(answer, "metrics").is_array()) {
    return absl::InternalError("the service's answer is no list of a job's metrics");
  }
  JobMetricsView view{.live = IsLive(answer)};
  for (const json& metric : answer["metrics"]) {
    if (!metric.is_object()) continue;
    view.metrics.push_back({.name = TextAt(metric, "name"),
                            .run = TextAt(metric, "run"),
                            .rank = static_cast<int>(NumberAt(metric, "rank")),
                            .last = NumberOrNan(metric, "last"),
                            .step = NumberOrNan(metric, "step"),
                            .min = NumberOrNan(metric, "min"),
                            .max = NumberOrNan(metric, "max"),
                            .last_not_finite = TextAt(metric, "last_not_finite"),
                            .not_finite = NumberAt(metric, "not_finite"),
                            .first_not_finite = NumberOrNan(metric, "first_not_finite"),
                            .course = MetricPointsOf(At(metric, "course")),
                            .newest = MetricPointsOf(At(metric, "newest"))});
  }
  return view;
}

}  // namespace tutti::client
