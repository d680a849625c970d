// TrialMetrics reads what a trial has reported of the sweep's metric, from its folder: the metrics
// files of its ranks and, once its results are there, what it has logged by MLflow: by the
// service's tracking, or in the file stores in outputs/.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "platform/flow/metric_reports.h"
#include "platform/service/logs/growing_file.h"

namespace tutti::service {

// Reads a trial's metrics on from where the last look ended, however large the files are. What was
// read stays, also when a file cannot be read now. Not thread-safe.
class TrialMetrics {
 public:
  // Returns what the trial has logged by MLflow's tracking.
  using Tracked = std::function<absl::StatusOr<flow::MetricReports>()>;

  TrialMetrics(std::filesystem::path job_folder, std::string metric, Tracked tracked = {})
      : folder_(std::move(job_folder)), metric_(std::move(metric)), tracked_(std::move(tracked)) {}

  // Takes in the lines that have come. With `to_the_end`, once nothing more comes, also a last line
  // without a newline, and what MLflow was told if no rank has reported the metric. True if there
  // was anything. An error is that of a file which is there and cannot be read: what could be read
  // is taken in, and the next call goes on. Tracking that cannot be read is asked so often, unless
  // it is damaged or files have the metric, and then done without.
  absl::StatusOr<bool> ReadOn(bool to_the_end);
  // Returns the metrics that the lowest rank which reported any has reported; those of MLflow's
  // store if no rank has.
  flow::MetricReports reports() const;
  // Returns of these what the call before has not returned. `anew` is set if that was of another
  // rank, or of a store that was read again: then all are returned.
  flow::MetricReports NewReports(bool& anew);

 private:
  struct RankFile {
    explicit RankFile(std::filesystem::path path) : file(std::move(path)) {}
    GrowingFile file;
    flow::MetricReports reports;
  };
  // Returns what `reports` returns, without a copy; null: there is none.
  const std::vector<double>* Values() const;
  flow::MetricReports Names() const;  // all of `reports` but the values
  using Parse = std::function<flow::MetricReports(absl::string_view lines)>;
  absl::Status ReadMlflow();
  absl::Status ReadTracked();
  // Reads a file on; `any` is set if there was anything. OK if there is no such file.
  static absl::Status ReadFile(bool to_the_end, const Parse& parse, RankFile& file, bool& any);

  const std::filesystem::path folder_;
  const std::string metric_;
  const Tracked tracked_;          // or empty
  int refused_ = 0;                // how often it was asked in vain
  std::map<int, RankFile> files_;  // by rank
  flow::MetricReports mlflow_;
  const std::vector<double>* told_ = nullptr;  // whose values NewReports has returned
  size_t told_count_ = 0;                      // how many of them
};

// Returns all that a trial that has ended has reported.
flow::MetricReports ReportsOf(const std::filesystem::path& job_folder, absl::string_view metric);

// Returns whether no report means that there is none: false if the files of its ranks cannot be
// listed now.
bool HasReadableLogs(const std::filesystem::path& job_folder);

}  // namespace tutti::service
