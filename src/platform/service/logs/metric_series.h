// LoggedMetrics reads what a job's ranks report while it runs and afterwards: each metric with its
// course, from the `metrics` and `mlflow` streams of its log (docs/formats/metrics.md). It reads on
// from where it was, so that asking again costs what has come since, keeps spans of points
// (metric_spans.h), and reads a part of a file again for who asks for a range down to its points.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "platform/mlflow/file_store.h"
#include "platform/service/logs/growing_file.h"
#include "platform/service/logs/metric_spans.h"
#include "platform/service/logs/reported_line.h"

namespace tutti::service {

struct MetricQuery {
  std::optional<int> rank;           // none: the lowest that reports any
  std::string metric;                // that name alone; empty: all
  size_t points = 0;                 // of each course at most, and two beside a range
  size_t newest = 0;                 // of the last points, kMostNewest at most
  std::optional<MetricRange> range;  // that part of the courses
};

// What a metric's reports are, for a query.
struct ReportedMetric {
  std::string name;  // "loss", "evaluation/top1"
  int rank = 0;
  std::string run;                          // of MLflow; "": of a metrics file
  int64_t count = 0, not_finite = 0;        // of all points
  std::optional<int64_t> first_not_finite;  // the step of the first of these
  Extent values;                            // of all that are finite
  MetricPoint last;                         // of all points
  std::vector<MetricSpan> course;           // of all points, or of the range
  int64_t span = 1;                         // how many points each of `course` has, at most
  int64_t first = 0;                        // the number of its first point, from 0
  std::vector<MetricPoint> newest;

  void SetCourse(const MetricSpans& spans, int64_t first_point);
};

// A metric of one rank and, where it was logged by MLflow, of one run. Not thread-safe.
class MetricSeries {
 public:
  static constexpr size_t kMostCourse = 512;  // that is answered
  static constexpr size_t kMostNewest = 256;
  static constexpr size_t kMostSpans = 4096;  // that are kept

  MetricSeries(std::string name, int rank, std::string run)
      : name_(std::move(name)), rank_(rank), run_(std::move(run)), spans_(kMostSpans) {}

  // Adds the next point, whose line begins at `offset` of its file.
  void Add(const MetricPoint& point, uint64_t offset = 0);
  // Has fewer spans kept from now on.
  void Fit(size_t most_spans) { spans_.Fit(most_spans); }
  void set_nested(bool nested) { nested_ = nested; }

  const std::string& name() const { return name_; }
  const std::string& run() const { return run_; }
  bool nested() const { return nested_; }
  uint64_t bytes() const;  // of memory

  // A part of the file whose points a query needs, since the spans are not fine enough.
  struct Part {
    uint64_t begin = 0;
    std::optional<uint64_t> end;  // none: the last line that the series has
    PointsInRange points;
  };
  // Returns what the spans answer; with `part`, that is set where a finer course is to be read.
  ReportedMetric Report(const MetricQuery& query, std::optional<Part>* part = nullptr) const;

 private:
  std::string name_;
  int rank_;
  std::string run_;
  bool nested_ = false;
  int64_t not_finite_ = 0;
  std::optional<int64_t> first_not_finite_;
  Extent values_;
  MetricSpans spans_;
  std::deque<MetricPoint> newest_;
};

// Thread-safe.
class LoggedMetrics {
 public:
  static constexpr size_t kMostSeries = 256;                           // of a rank
  static constexpr size_t kMostSpans = 64 * MetricSeries::kMostSpans;  // of all of them

  // Reads from a job's folder. Forgets other ranks than the one that is asked for while all take
  // more than `most_bytes`.
  explicit LoggedMetrics(const std::filesystem::path& job_folder, uint64_t most_bytes)
      : logs_(job_folder / "logs"), most_bytes_(most_bytes) {}

  // Reads on what has come of that rank, or of the lowest that reports any, and returns its metrics
  // in the order in which they began, of more than kMostSeries the first: of MLflow's runs those
  // within others only where no other has any; of what it reports both ways what its metrics file
  // has. An error is one of a file that cannot be read.
  absl::StatusOr<std::vector<ReportedMetric>> Read(const MetricQuery& query);
  uint64_t bytes() const;  // of memory

 private:
  struct File;
  struct Kept {
    MetricSeries series;
    const File* file = nullptr;
    std::string key;
  };
  struct File {
    explicit File(const std::filesystem::path& its_path) : path(its_path), lines(its_path) {}
    const std::filesystem::path path;
    GrowingFile lines;
    absl::flat_hash_map<std::string, MetricSeries*> by_key;
    ReportedLine line;  // the last that was read
    std::string key;    // of its last value
  };
  struct Rank {
    std::map<std::filesystem::path, File> files;
    std::list<Kept> kept;
    uint64_t bytes = 0;  // of memory
  };
  // A part of a file to read again, for that metric of the answer.
  struct Again {
    std::filesystem::path path;
    uint64_t begin = 0, end = 0;
    std::string key;
    PointsInRange points;
    ReportedMetric* metric = nullptr;
  };
  absl::StatusOr<Rank*> ReadOn(std::optional<int> rank) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static absl::Status ReadFiles(int number, const std::vector<std::filesystem::path>& paths,
                                Rank& rank);
  static void TakeLine(int number, uint64_t offset, Rank& rank, File& file);
  // Keeps a series of the key of the file.
  static MetricSeries* Begin(MetricSeries series, Rank& rank, File& file);
  void Forget(const Rank& all_but) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static std::vector<const Kept*> Shown(const Rank& rank, const std::string& metric);
  static absl::Status ReadAgain(std::vector<Again>& parts);

  const std::filesystem::path logs_;
  const uint64_t most_bytes_;
  mutable absl::Mutex mutex_;
  std::map<int, Rank> ranks_ ABSL_GUARDED_BY(mutex_);
};

// Returns the last value of each, by name; of several runs' the one that was logged last.
std::vector<mlflow::Metric> LastValues(const std::vector<ReportedMetric>& metrics);

// Keeps the LoggedMetrics of the jobs that were asked for last. Thread-safe.
class MetricsOfJobs {
 public:
  static constexpr uint64_t kMostBytes = uint64_t{64} << 20;

  // Keeps what has been read of 64 jobs while all of it takes no more than `most_bytes` of memory,
  // and of the last job whatever that takes.
  explicit MetricsOfJobs(uint64_t most_bytes = kMostBytes) : most_bytes_(most_bytes) {}

  // Returns LoggedMetrics::Read of the job of that folder; `sequence` tells it from an earlier one
  // of its name.
  absl::StatusOr<std::vector<ReportedMetric>> Read(const std::filesystem::path& job_folder,
                                                   int64_t sequence, const MetricQuery& query);
  uint64_t bytes() const;

 private:
  struct Entry {
    Entry(const std::filesystem::path& job_folder, int64_t its_sequence, uint64_t most_bytes)
        : folder(job_folder), sequence(its_sequence), metrics(job_folder, most_bytes) {}
    const std::filesystem::path folder;
    const int64_t sequence;
    LoggedMetrics metrics;
    uint64_t bytes = 0;  // when it was read last
  };
  std::shared_ptr<Entry> Find(const std::filesystem::path& job_folder, int64_t sequence);
  void Account(Entry& entry);

  const uint64_t most_bytes_;
  mutable absl::Mutex mutex_;
  std::list<std::shared_ptr<Entry>> latest_ ABSL_GUARDED_BY(mutex_);  // the last asked for first
};

}  // namespace tutti::service
