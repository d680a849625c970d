#include "platform/api/tracked_logs.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "base/text/utf8.h"

namespace tutti::api {
namespace {

constexpr size_t kMostTracked = 1'000;

// As of mlflow::Param.
std::string FirstLine(const std::string& value) {
  return base::BoundedUtf8(value.substr(0, value.find('\n')), mlflow::kMostParam);
}

}  // namespace

void AddTracked(const tracking::Run& run, mlflow::Logged& logged) {
  if (!logged.metrics.empty() || !logged.runs.empty() || !logged.params.empty()) return;
  for (const tracking::Metric& metric : run.metrics) {
    if (absl::StartsWith(metric.key, "system/") || logged.metrics.size() == kMostTracked) continue;
    logged.metrics.push_back({metric.key, metric.point.value, metric.point.step});
  }
  for (const tracking::KeyValue& param : run.params) {
    if (logged.params.size() == kMostTracked) break;
    logged.params.push_back({param.key, FirstLine(param.value)});
  }
  if (!logged.metrics.empty()) {
    logged.runs.push_back({run.info.id, run.info.name, "", logged.metrics});
  }
}

void AddReported(const std::vector<mlflow::Metric>& reported, mlflow::Logged& logged) {
  std::set<std::string> known;
  for (const mlflow::Metric& metric : logged.metrics) known.insert(metric.name);
  for (const mlflow::Metric& metric : reported) {
    if (known.insert(metric.name).second) logged.metrics.push_back(metric);
  }
  std::sort(logged.metrics.begin(), logged.metrics.end(),
            [](const mlflow::Metric& a, const mlflow::Metric& b) { return a.name < b.name; });
}

}  // namespace tutti::api
