// Reads and writes the rows of runs, their params, tags and inputs. Errors are in MLflow's words.
// Internal to platform/tracking.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "platform/store/sqlite_connection.h"
#include "platform/tracking/values/values.h"

namespace tutti::tracking {

inline constexpr char kRunNameTag[] = "mlflow.runName";

// Returns its sequence.
int64_t InsertRun(store::SqliteConnection& sqlite, const RunInfo& run);
// NotFound.
absl::StatusOr<RunInfo> SelectRunInfo(store::SqliteConnection& sqlite, const std::string& id);
// NotFound, and InvalidArgument if it is deleted.
absl::StatusOr<RunInfo> SelectActiveRun(store::SqliteConnection& sqlite, const std::string& id);
// Returns the runs whose job_run is that one.
std::vector<RunInfo> SelectRunsOfJob(store::SqliteConnection& sqlite, const std::string& job_run);
// Returns the runs that are jobs' own and have not been settled.
std::vector<RunInfo> SelectUnsettledRuns(store::SqliteConnection& sqlite);
// Returns the sequence of the first of a job's other runs that has any metric.
std::optional<int64_t> SelectOtherRunWithMetrics(store::SqliteConnection& sqlite,
                                                 const std::string& job_run);
// Returns whether the job that has this run has ended.
bool IsSettled(store::SqliteConnection& sqlite, const std::string& job_run);
// Returns all of a run but its metrics.
Run SelectRun(store::SqliteConnection& sqlite, int64_t sequence);

// Writes what may change: name, status, end, deleted, settled.
void UpdateRunInfo(store::SqliteConnection& sqlite, const RunInfo& run);
// A param that is there keeps its value: InvalidArgument for another one.
absl::Status AddParams(store::SqliteConnection& sqlite, const RunInfo& run,
                       const std::vector<KeyValue>& params);
// Sets tags; that of the run's name renames it.
absl::Status PutTags(store::SqliteConnection& sqlite, const RunInfo& run,
                     const std::vector<KeyValue>& tags);
std::optional<std::string> SelectTag(store::SqliteConnection& sqlite, int64_t run,
                                     const std::string& key);
// NotFound.
absl::Status RemoveTag(store::SqliteConnection& sqlite, const RunInfo& run, const std::string& key);
// Adds data sets as inputs; one that is known by name and digest stays as it is.
// InvalidArgument if they are too many for a run.
absl::Status AddInputs(store::SqliteConnection& sqlite, const RunInfo& run,
                       const std::vector<DatasetInput>& inputs);

}  // namespace tutti::tracking
