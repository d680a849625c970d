// Defines the functions of TrackingStore for the runs of jobs.
#include <algorithm>
#include <utility>

#include "base/status.h"
#include "platform/tracking/rows/experiment_rows.h"
#include "platform/tracking/rows/run_rows.h"
#include "platform/tracking/rows/series_rows.h"
#include "platform/tracking/store/artifact_uri.h"
#include "platform/tracking/store/tracking_store.h"

namespace tutti::tracking {
namespace {

using store::SqliteConnection;

constexpr int64_t kPointsOfPage = 20'000;
constexpr size_t kMostOtherNames = 20;
constexpr char kDefault[] = "Default";

bool HasEnded(const RunInfo& run) {
  return run.status != RunStatus::kRunning && run.status != RunStatus::kScheduled;
}

absl::StatusOr<Experiment> ExperimentOf(SqliteConnection& sqlite, const std::string& name,
                                        int64_t now) {
  auto known = SelectExperimentByName(sqlite, name);
  if (!absl::IsNotFound(known.status())) return known;
  TUTTI_ASSIGN_OR_RETURN(const int64_t id,
                         InsertExperiment(sqlite, {.name = name, .created = now, .updated = now}));
  return SelectExperiment(sqlite, id);
}

std::vector<double> ValuesOf(SqliteConnection& sqlite, int64_t series) {
  std::vector<double> values;
  std::optional<Point> last;
  while (true) {
    const std::vector<Point> points = PointsAfter(sqlite, series, last, kPointsOfPage);
    for (const Point& point : points) values.push_back(point.value);
    if (std::ssize(points) < kPointsOfPage) return values;
    last = points.back();
  }
}

absl::StatusOr<RunInfo> InsertJobRun(SqliteConnection& sqlite, const JobRunCreation& creation,
                                     int64_t now) {
  const std::string name = creation.experiment.empty() ? kDefault : creation.experiment;
  TUTTI_ASSIGN_OR_RETURN(const Experiment experiment, ExperimentOf(sqlite, name, now));
  TUTTI_RETURN_IF_ERROR(CheckExperimentIsActive(experiment));
  RunInfo run{.id = creation.id,
              .name = creation.name,
              .experiment = experiment.id,
              .user = creation.user,
              .start = now,
              .artifact_uri = ArtifactUri(experiment, creation.id),
              .job_run = creation.id,
              .job = creation.job};
  run.sequence = InsertRun(sqlite, run);
  std::vector<KeyValue> tags = creation.tags;
  tags.push_back({kRunNameTag, creation.name});
  TUTTI_RETURN_IF_ERROR(PutTags(sqlite, run, tags));
  return run;
}

}  // namespace

absl::StatusOr<RunInfo> TrackingStore::BeginJobRun(const JobRunCreation& creation) {
  RunInfo run;
  TUTTI_RETURN_IF_ERROR(CheckLength("user_id", creation.user, kMostUserLength));
  if (!creation.experiment.empty()) TUTTI_RETURN_IF_ERROR(CheckExperimentName(creation.experiment));
  bool runs = false;  // as another node of the job has asked for
  TUTTI_RETURN_IF_ERROR(Read([&](SqliteConnection& sqlite) -> absl::Status {
    auto known = SelectActiveRun(sqlite, creation.id);
    if (absl::IsNotFound(known.status())) return absl::OkStatus();
    TUTTI_ASSIGN_OR_RETURN(run, std::move(known));
    runs = !HasEnded(run) && !run.settled;
    return absl::OkStatus();
  }));
  if (runs) return run;
  TUTTI_RETURN_IF_ERROR(Write([&](SqliteConnection& sqlite) -> absl::Status {
    auto known = SelectActiveRun(sqlite, creation.id);
    if (absl::IsNotFound(known.status())) known = InsertJobRun(sqlite, creation, Now());
    TUTTI_ASSIGN_OR_RETURN(run, std::move(known));
    if (!HasEnded(run) && !run.settled) return absl::OkStatus();
    run.status = RunStatus::kRunning;
    run.end.reset();
    run.settled = false;
    UpdateRunInfo(sqlite, run);
    return absl::OkStatus();
  }));
  return run;
}

absl::Status TrackingStore::EndJobRun(const std::string& id, RunStatus status, int64_t end) {
  return Write([&](SqliteConnection& sqlite) -> absl::Status {
    for (RunInfo& run : SelectRunsOfJob(sqlite, id)) {
      if (run.id != id && HasEnded(run)) continue;
      run.status = status;
      run.end = end;
      run.settled = run.id == id;
      UpdateRunInfo(sqlite, run);
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<std::vector<RunInfo>> TrackingStore::UnsettledRuns() {
  std::vector<RunInfo> runs;
  TUTTI_RETURN_IF_ERROR(Read(
      [&](SqliteConnection& sqlite) -> absl::Status {
        runs = SelectUnsettledRuns(sqlite);
        return absl::OkStatus();
      },
      store::ReadKind::kLong));
  return runs;
}

absl::StatusOr<Run> TrackingStore::GetJobRun(const std::string& id) {
  TUTTI_ASSIGN_OR_RETURN(Run own, GetRun(id));
  if (!own.metrics.empty()) return own;
  TUTTI_RETURN_IF_ERROR(Read([&](SqliteConnection& sqlite) -> absl::Status {
    const std::optional<int64_t> other = SelectOtherRunWithMetrics(sqlite, id);
    if (!other) return absl::OkStatus();
    own.metrics = LastMetrics(sqlite, *other);
    own.params = SelectRun(sqlite, *other).params;
    return absl::OkStatus();
  }));
  return own;
}

absl::StatusOr<JobMetric> TrackingStore::MetricOfJob(const std::string& job_run,
                                                     const std::string& key) {
  JobMetric metric;
  TUTTI_RETURN_IF_ERROR(Read(
      [&](SqliteConnection& sqlite) -> absl::Status {
        std::vector<RunInfo> runs = SelectRunsOfJob(sqlite, job_run);
        std::stable_partition(runs.begin(), runs.end(),
                              [&](const RunInfo& run) { return run.id == job_run; });
        for (const RunInfo& run : runs) {
          if (run.deleted) continue;
          const auto series = FindSeries(sqlite, run.sequence, key);
          if (series) metric.values = ValuesOf(sqlite, *series);
          if (series) return absl::OkStatus();
          for (const Metric& other : LastMetrics(sqlite, run.sequence)) {
            if (metric.other_names.size() >= kMostOtherNames) break;
            metric.other_names.push_back(other.key);
          }
        }
        return absl::OkStatus();
      },
      store::ReadKind::kLong));
  return metric;
}

}  // namespace tutti::tracking
