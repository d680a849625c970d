#include "platform/service/flow/trial_metrics.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/mlflow/file_store.h"

namespace tutti::service {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMetricsBlock = 1 << 20;
constexpr size_t kLongestReport = 64 << 10;  // a longer one reports nothing
constexpr size_t kMostOtherNames = 20;
constexpr int kMostTries = 60;  // of the service's loop, some minutes

// "rank-3.metrics" by rank.
absl::StatusOr<std::map<int, fs::path>> MetricsFiles(const fs::path& job_folder) {
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
  const bool is_there = error && error != std::errc::no_such_file_or_directory;
  if (is_there) {
    return base::ErrnoStatus(absl::StrCat("read ", job_folder.native(), "/logs"), error.value());
  }
  return files;
}

}  // namespace

absl::StatusOr<bool> TrialMetrics::ReadOn(bool to_the_end) {
  const Parse parse = [this](absl::string_view lines) {
    return flow::ReportsInMetricsFile(lines, metric_);
  };
  bool any = false;
  bool reported = false;
  TUTTI_ASSIGN_OR_RETURN(const auto files, MetricsFiles(folder_));
  absl::Status status;
  for (const auto& [rank, path] : files) {
    RankFile& file = files_[rank];
    status.Update(ReadFile(path, to_the_end, parse, file, any));
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
    RankFile file;
    bool any = false;
    status.Update(ReadFile(path, /*to_the_end=*/true, parse, file, any));
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

absl::Status TrialMetrics::ReadFile(const fs::path& path, bool to_the_end, const Parse& parse,
                                    RankFile& file, bool& any) {
  const auto fd = base::Open(path, O_RDONLY);
  if (absl::IsNotFound(fd.status())) return absl::OkStatus();
  TUTTI_RETURN_IF_ERROR(fd.status());
  std::string block(kMetricsBlock, '\0');
  while (true) {
    const ssize_t n =
        ::pread(fd->get(), block.data(), block.size(), static_cast<off_t>(file.offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return base::ErrnoStatus(absl::StrCat("read ", path.native()));
    if (n == 0) break;
    any = true;
    file.offset += n;
    Take(absl::string_view(block).substr(0, n), parse, file);
  }
  if (to_the_end && !file.rest.empty()) Take("\n", parse, file);
  return absl::OkStatus();
}

void TrialMetrics::Take(absl::string_view bytes, const Parse& parse, RankFile& file) {
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
  flow::MetricReports fresh = parse(lines);
  flow::MetricReports& all = file.reports;
  all.values.insert(all.values.end(), fresh.values.begin(), fresh.values.end());
  for (const std::string& name : fresh.other_names) {
    if (all.other_names.size() < kMostOtherNames) all.other_names.insert(name);
  }
  if (all.odd_line.empty()) all.odd_line = std::move(fresh.odd_line);
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
