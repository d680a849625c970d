#include "platform/service/flow/trial_metrics.h"

#include <spdlog/spdlog.h>

#include <map>
#include <system_error>
#include <utility>
#include <vector>

#include "base/status.h"
#include "platform/mlflow/file_store.h"
#include "platform/service/logs/job_logs.h"

namespace tutti::service {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostOtherNames = 20;
constexpr int kMostTries = 60;  // of the service's loop, some minutes

}  // namespace

absl::StatusOr<bool> TrialMetrics::ReadOn(bool to_the_end) {
  const Parse parse = [this](absl::string_view lines) {
    return flow::ReportsInMetricsFile(lines, metric_);
  };
  bool any = false;
  bool reported = false;
  TUTTI_ASSIGN_OR_RETURN(const auto files, RankFiles(folder_ / "logs", LogStream::kMetrics));
  absl::Status status;
  for (const auto& [rank, path] : files) {
    RankFile& file = files_.try_emplace(rank, path).first->second;
    status.Update(ReadFile(to_the_end, parse, file, any));
    reported |= !file.reports.values.empty();
  }
  TUTTI_RETURN_IF_ERROR(status);
  if (!to_the_end || reported) return any;
  TUTTI_RETURN_IF_ERROR(ReadMlflow());
  return true;
}

absl::Status TrialMetrics::ReadMlflow() {
  const Parse parse = [](absl::string_view lines) {
    return flow::MetricReports{.values = flow::ReportsInMlflowFile(lines)};
  };
  mlflow_ = {};
  const absl::Status tracked = ReadTracked();
  if (!mlflow_.values.empty()) return absl::OkStatus();
  absl::Status status;
  mlflow::ForEachMetric(folder_ / "outputs", [&](const std::string& name, const fs::path& path) {
    if (name != metric_) {
      if (mlflow_.other_names.size() < kMostOtherNames) {
        mlflow_.other_names.insert(name.substr(0, 80));
      }
      return;
    }
    RankFile file(path);
    bool any = false;
    status.Update(ReadFile(/*to_the_end=*/true, parse, file, any));
    const std::vector<double>& values = file.reports.values;
    mlflow_.values.insert(mlflow_.values.end(), values.begin(), values.end());
  });
  if (mlflow_.values.empty()) status.Update(tracked);
  return status;
}

absl::Status TrialMetrics::ReadTracked() {
  if (!tracked_) return absl::OkStatus();
  auto tracked = tracked_();
  if (tracked.ok()) mlflow_ = *std::move(tracked);
  if (tracked.ok()) return absl::OkStatus();
  if (++refused_ < kMostTries && !absl::IsDataLoss(tracked.status())) return tracked.status();
  spdlog::error("what MLflow's tracking has of metric {} is done without: {}", metric_,
                tracked.status().ToString());
  return absl::OkStatus();
}

absl::Status TrialMetrics::ReadFile(bool to_the_end, const Parse& parse, RankFile& file,
                                    bool& any) {
  const auto read = file.file.ReadOn(to_the_end, [&](absl::string_view lines, uint64_t /*offset*/) {
    flow::MetricReports fresh = parse(lines);
    flow::MetricReports& all = file.reports;
    all.values.insert(all.values.end(), fresh.values.begin(), fresh.values.end());
    for (const std::string& name : fresh.other_names) {
      if (all.other_names.size() < kMostOtherNames) all.other_names.insert(name);
    }
    if (all.odd_line.empty()) all.odd_line = std::move(fresh.odd_line);
  });
  any |= read.value_or(true);  // some of it may have been read
  return read.status();
}

const std::vector<double>* TrialMetrics::Values() const {
  for (const auto& [rank, file] : files_) {
    if (!file.reports.values.empty()) return &file.reports.values;
  }
  return mlflow_.values.empty() ? nullptr : &mlflow_.values;
}

flow::MetricReports TrialMetrics::Names() const {
  flow::MetricReports all;
  for (const auto& [rank, file] : files_) {
    all.other_names.insert(file.reports.other_names.begin(), file.reports.other_names.end());
    if (all.odd_line.empty()) all.odd_line = file.reports.odd_line;
  }
  all.other_names.insert(mlflow_.other_names.begin(), mlflow_.other_names.end());
  return all;
}

flow::MetricReports TrialMetrics::reports() const {
  flow::MetricReports all = Names();
  if (const std::vector<double>* const values = Values()) all.values = *values;
  return all;
}

flow::MetricReports TrialMetrics::NewReports(bool& anew) {
  flow::MetricReports fresh = Names();
  const std::vector<double>* const values = Values();
  anew = values != told_ || values == &mlflow_.values;
  if (anew) told_count_ = 0;
  told_ = values;
  if (values == nullptr) return fresh;
  fresh.values.assign(values->begin() + static_cast<std::ptrdiff_t>(told_count_), values->end());
  told_count_ = values->size();
  return fresh;
}

flow::MetricReports ReportsOf(const fs::path& job_folder, absl::string_view metric) {
  TrialMetrics metrics(job_folder, std::string(metric));
  metrics.ReadOn(/*to_the_end=*/true).IgnoreError();
  return metrics.reports();
}

bool HasReadableLogs(const fs::path& job_folder) {
  std::error_code error;
  const fs::directory_iterator entries(job_folder / "logs", error);
  return !error || error == std::errc::no_such_file_or_directory;
}

}  // namespace tutti::service
