// LoggedMetrics reads what a job's ranks report while it runs and afterwards: each metric with its
// course, from the `metrics` and `mlflow` streams of its log (docs/formats/metrics.md). It reads on
// from where it was, so that asking again costs what has come since.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "platform/mlflow/file_store.h"
#include "platform/service/logs/growing_file.h"

namespace tutti::service {

struct MetricPoint {
  double value = 0;  // NaN: it was not finite
  std::optional<int64_t> step;
  std::optional<double> time;  // seconds since 1970
};

// A metric of one rank and, where it was logged by MLflow, of one run.
struct MetricSeries {
  static constexpr size_t kMostCourse = 512;  // of `course`: then every other one is dropped
  static constexpr size_t kMostNewest = 256;

  // Adds the next point.
  void Add(const MetricPoint& point);

  std::string name;  // "loss", "evaluation/top1"
  int rank = 0;
  std::string run;      // of MLflow; "": of a metrics file
  bool nested = false;  // it is a run within another
  int64_t count = 0;    // of all points
  std::optional<double> min, max;
  std::vector<MetricPoint> course;  // of all points evenly spread ones, from the first on
  std::deque<MetricPoint> newest;   // the last ones

 private:
  int64_t stride_ = 1;  // of `course`
};

class LoggedMetrics {
 public:
  static constexpr size_t kMostSeries = 256;  // of a rank

  // Reads from a job's folder.
  explicit LoggedMetrics(const std::filesystem::path& job_folder) : logs_(job_folder / "logs") {}

  // Reads on what has come of that rank, or of the lowest that reports any, and returns its series
  // in the order in which they began: of a file larger than 64 MiB those of its last part, of more
  // than kMostSeries the first. An error is one of a file that cannot be read.
  absl::StatusOr<std::vector<MetricSeries>> ReadOn(std::optional<int> rank);

 private:
  using Key = std::pair<std::string, std::string>;  // run, name
  struct Rank {
    std::map<std::filesystem::path, GrowingFile> files;
    std::list<MetricSeries> series;
    std::map<Key, MetricSeries*> by_key;
  };
  static void TakeLine(int number, absl::string_view line, Rank& rank);
  static MetricSeries* Find(int number, const std::string& run, const std::string& name,
                            Rank& rank);

  const std::filesystem::path logs_;
  std::map<int, Rank> ranks_;
};

// Returns of a rank's series what is to be shown: of MLflow's runs those within others only where
// no other has any; of what it reports both ways what its metrics file has.
std::vector<MetricSeries> SeriesToShow(std::vector<MetricSeries> series);

// Returns the last value of each, by name; of several runs' the one that was logged last.
std::vector<mlflow::Metric> LastValues(const std::vector<MetricSeries>& series);

// Keeps the LoggedMetrics of the jobs that were asked for last. Thread-safe.
class MetricsOfJobs {
 public:
  // Returns what is to be shown of LoggedMetrics::ReadOn of the job of that folder; `sequence`
  // tells it from an earlier one of its name.
  absl::StatusOr<std::vector<MetricSeries>> Read(const std::filesystem::path& job_folder,
                                                 int64_t sequence, std::optional<int> rank);

 private:
  struct Entry {
    Entry(const std::filesystem::path& job_folder, int64_t its_sequence)
        : folder(job_folder), sequence(its_sequence), metrics(job_folder) {}
    const std::filesystem::path folder;
    const int64_t sequence;
    absl::Mutex mutex;
    LoggedMetrics metrics ABSL_GUARDED_BY(mutex);
  };
  std::shared_ptr<Entry> Find(const std::filesystem::path& job_folder, int64_t sequence);

  absl::Mutex mutex_;
  std::list<std::shared_ptr<Entry>> latest_ ABSL_GUARDED_BY(mutex_);  // the last asked for first
};

}  // namespace tutti::service
