#include "platform/api/json/usage_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "spec/json/json_fields.h"

namespace tutti::api {
namespace {

using json = nlohmann::ordered_json;
using service::kFirstGpuColumn;
using service::kGpuColumns;
using service::kNodeColumns;
using service::kNodeWidth;
using service::kRankColumns;
using service::kRankWidth;
using service::UsageTable;

// Cores and parts to a thousandth, bytes whole; what is not known is null.
json Value(float value) {
  if (!std::isfinite(value)) return nullptr;
  if (value >= 1000) return static_cast<int64_t>(value);
  return std::round(static_cast<double>(value) * 1000) / 1000;
}

std::string TimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
}

json ColumnOf(const UsageTable& table, size_t column) {
  json values = json::array();
  for (size_t row = 0; row < table.size(); ++row) values.push_back(Value(table.at(row, column)));
  return values;
}

bool IsKnown(const UsageTable& table, size_t column) {
  for (size_t row = 0; row < table.size(); ++row) {
    if (std::isfinite(table.at(row, column))) return true;
  }
  return false;
}

json SeriesOf(const service::JobUsageView::Node& node, const UsageTable& table,
              const service::UsageQuery& query) {
  json series = {{"time", json::array()}, {"ranks", json::array()}};
  for (size_t row = 0; row < table.size(); ++row) {
    series["time"].push_back(TimeText(absl::FromUnixMillis(table.time(row))));
  }
  for (size_t i = 0; i < kFirstGpuColumn; ++i) {
    series[kNodeColumns[i].name] = ColumnOf(table, i);
  }
  for (size_t i = kFirstGpuColumn; i < kNodeWidth; ++i) {
    if (!IsKnown(table, i)) continue;  // as of a node without GPUs
    series[kGpuColumns[i - kFirstGpuColumn].name] = ColumnOf(table, i);
  }
  for (int local = 0; local < node.ranks; ++local) {
    const int rank = node.first_rank + local;
    if (query.rank && *query.rank != rank) continue;
    json& entry = series["ranks"].emplace_back(json{{"rank", rank}});
    for (size_t i = 0; i < kRankWidth; ++i) {
      entry[kRankColumns[i].name] = ColumnOf(table, kNodeWidth + local * kRankWidth + i);
    }
  }
  return series;
}

json RankStates(const std::vector<service::RankState>& ranks) {
  json all = json::array();
  for (const service::RankState& rank : ranks) {
    json& entry = all.emplace_back(
        json{{"rank", rank.rank}, {"node", rank.node}, {"state", service::Name(rank.kind)}});
    if (rank.since) entry["since"] = TimeText(*rank.since);
    if (rank.kind != service::RankState::Kind::kEnded) continue;
    if (rank.signal != 0) {
      entry["signal"] = rank.signal;
    } else {
      entry["code"] = rank.code;
    }
  }
  return all;
}

}  // namespace

std::string UsageJson(const std::string& job, const service::JobUsageView& usage,
                      const std::vector<service::RankState>& ranks,
                      const service::UsageQuery& query) {
  json answer = {
      {"job", job}, {"live", usage.live}, {"problems", usage.problems}, {"nodes", json::array()}};
  for (const auto& node : usage.nodes) {
    answer["nodes"].push_back({{"node", node.number},
                               {"name", node.name},
                               {"age", node.age ? json(absl::ToDoubleSeconds(*node.age)) : json()},
                               {"recent", SeriesOf(node, node.recent, query)},
                               {"whole", SeriesOf(node, node.whole, query)}});
  }
  answer["ranks"] = RankStates(ranks);
  return spec::Dump(answer);
}

}  // namespace tutti::api
