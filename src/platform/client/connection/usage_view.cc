#include "platform/client/connection/usage_view.h"

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
          .samples = ColumnAt(series, "samples")};
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

}  // namespace

absl::StatusOr<JobUsageView> ParseUsage(absl::string_view text) {
  const json usage = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!usage.is_object() || !At(usage, "nodes").is_array()) {
    return absl::InternalError("the service's answer is no usage of a job");
  }
  JobUsageView view;
  const auto live = usage.find("live");
  view.live = live != usage.end() && live->is_boolean() && live->get<bool>();
  for (const json& line : At(usage, "problems")) {
    if (line.is_string()) view.problems.push_back(line.get<std::string>());
  }
  for (const json& node : usage["nodes"]) {
    if (node.is_object()) view.nodes.push_back(NodeUsageOf(node));
  }
  return view;
}

}  // namespace tutti::client
