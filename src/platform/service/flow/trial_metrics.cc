#include "platform/service/flow/trial_metrics.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "platform/mlflow/file_store.h"

namespace tutti::service {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLargest = 64 << 20;  // of a metric's file in MLflow's store
constexpr size_t kMetricsBlock = 1 << 20;
constexpr size_t kLongestReport = 64 << 10;  // a longer one reports nothing
constexpr size_t kMostOtherNames = 20;

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

bool TrialMetrics::ReadOn(bool to_the_end) {
  bool any = false;
  bool reported = false;
  for (const auto& [rank, path] : MetricsFiles(folder_)) {
    RankFile& file = files_[rank];
    any |= ReadFile(path, to_the_end, file);
    reported |= !file.reports.values.empty();
  }
  if (!to_the_end || reported) return any;
  mlflow_ = {};
  AddMlflow(folder_, metric_, mlflow_);
  return true;
}

bool TrialMetrics::ReadFile(const fs::path& path, bool to_the_end, RankFile& file) const {
  const auto fd = base::Open(path, O_RDONLY);
  if (!fd.ok()) return false;
  bool any = false;
  std::string block(kMetricsBlock, '\0');
  while (true) {
    const ssize_t n =
        ::pread(fd->get(), block.data(), block.size(), static_cast<off_t>(file.offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    any = true;
    file.offset += n;
    Take(absl::string_view(block).substr(0, n), file);
  }
  if (to_the_end && !file.rest.empty()) Take("\n", file);
  return any;
}

void TrialMetrics::Take(absl::string_view bytes, RankFile& file) const {
  const size_t newline = bytes.rfind('\n');
  if (newline == absl::string_view::npos) {
    if (!file.skips) absl::StrAppend(&file.rest, bytes);
    if (file.rest.size() <= kLongestReport) return;
    file.rest.clear();
    file.skips = true;
    return;
  }
  std::string lines = std::exchange(file.rest, std::string(bytes.substr(newline + 1)));
  if (file.skips) bytes.remove_prefix(bytes.find('\n'));
  file.skips = false;
  absl::StrAppend(&lines, bytes.substr(0, bytes.rfind('\n') + 1));
  flow::MetricReports fresh = flow::ReportsInMetricsFile(lines, metric_);
  flow::MetricReports& all = file.reports;
  all.values.insert(all.values.end(), fresh.values.begin(), fresh.values.end());
  for (const std::string& name : fresh.other_names) {
    if (all.other_names.size() < kMostOtherNames) all.other_names.insert(name);
  }
  if (all.odd_line.empty()) all.odd_line = std::move(fresh.odd_line);
}

flow::MetricReports TrialMetrics::reports() const {
  flow::MetricReports all;
  for (const auto& [rank, file] : files_) {
    all.other_names.insert(file.reports.other_names.begin(), file.reports.other_names.end());
    if (all.odd_line.empty()) all.odd_line = file.reports.odd_line;
    if (file.reports.values.empty()) continue;
    all.values = file.reports.values;
    return all;
  }
  all.values = mlflow_.values;
  all.other_names.insert(mlflow_.other_names.begin(), mlflow_.other_names.end());
  return all;
}

flow::MetricReports ReportsOf(const fs::path& job_folder, absl::string_view metric) {
  TrialMetrics metrics(job_folder, std::string(metric));
  metrics.ReadOn(/*to_the_end=*/true);
  return metrics.reports();
}

bool HasReadableLogs(const fs::path& job_folder) {
  std::error_code error;
  const fs::directory_iterator entries(job_folder / "logs", error);
  return !error || error == std::errc::no_such_file_or_directory;
}

}  // namespace tutti::service
