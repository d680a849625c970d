#include "platform/service/flow/trial_metrics.h"

#include <map>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "platform/mlflow/file_store.h"

namespace tutti::service {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLargest = 64 << 20;  // of a metrics file

// "rank-3.metrics" by rank.
std::map<int, fs::path> MetricsFiles(const fs::path& job_folder) {
  std::map<int, fs::path> files;
  std::error_code error;
  for (fs::directory_iterator entry(job_folder / "logs", error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    absl::string_view rest = name;
    int rank = 0;
    const bool is_one = absl::ConsumePrefix(&rest, "rank-") &&
                        absl::ConsumeSuffix(&rest, ".metrics") && absl::SimpleAtoi(rest, &rank);
    if (is_one) files[rank] = entry->path();
  }
  return files;
}

void AddMlflow(const fs::path& job_folder, absl::string_view metric, flow::MetricReports& reports) {
  mlflow::ForEachMetric(job_folder / "outputs", [&](const std::string& name, const fs::path& file) {
    if (name != metric) {
      if (reports.other_names.size() < 20) reports.other_names.insert(name.substr(0, 80));
      return;
    }
    const auto text = base::ReadFile(file, kLargest);
    if (!text.ok()) return;
    for (const double value : flow::ReportsInMlflowFile(*text)) reports.values.push_back(value);
  });
}

}  // namespace

uintmax_t MetricsBytes(const fs::path& job_folder) {
  uintmax_t bytes = 0;
  for (const auto& [rank, file] : MetricsFiles(job_folder)) {
    std::error_code error;
    const uintmax_t size = fs::file_size(file, error);
    if (!error) bytes += size;
  }
  return bytes;
}

flow::MetricReports ReportsOf(const fs::path& job_folder, absl::string_view metric) {
  flow::MetricReports all;
  for (const auto& [rank, file] : MetricsFiles(job_folder)) {
    const auto text = base::ReadFile(file, kLargest);
    if (!text.ok()) continue;
    flow::MetricReports reports = flow::ReportsInMetricsFile(*text, metric);
    all.other_names.merge(reports.other_names);
    if (all.odd_line.empty()) all.odd_line = reports.odd_line;
    if (reports.values.empty()) continue;
    all.values = std::move(reports.values);
    return all;
  }
  AddMlflow(job_folder, metric, all);
  return all;
}

}  // namespace tutti::service
