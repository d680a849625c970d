// TrackingStore keeps what jobs and people log through MLflow's clients: experiments, runs, metrics
// with their whole history, params, tags. A database of its own, beside that of the jobs, whose
// writes do not wait for these.
//
// Invariant: what has been answered OK survives the loss of power; what has not is there whole or
// not at all. Writes that come together share one sync of the disk. A call that is repeated, since
// its answer was lost, changes nothing.
//
// Errors are in MLflow's words: NotFound, AlreadyExists, InvalidArgument; ResourceExhausted if the
// disk is full, and nothing was written. Thread-safe.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "platform/store/shared_database.h"
#include "platform/tracking/rows/point_blocks.h"
#include "platform/tracking/search/search_query.h"
#include "platform/tracking/values/tracking_limits.h"
#include "platform/tracking/values/values.h"

namespace tutti::tracking {

struct TrackingStoreOptions {
  absl::Duration busy_timeout = absl::Seconds(10);
  // A search may take this long: there are filters that no index helps.
  absl::Duration search_limit = absl::Seconds(10);
  // Asked before each write: ResourceExhausted if the disk has no room but for what others have to
  // note there. Null: there is room.
  std::function<absl::Status()> check_room;
  std::function<void(int64_t)> on_commit;  // for tests; see store::DatabaseOptions
};

struct RunCreation {
  int64_t experiment = 0;
  std::string user, name;
  int64_t start = 0;
  std::vector<KeyValue> tags;
  std::string job_run;  // RunInfo::job_run
};

// JobRunCreation is a job's own run, which is there before the job begins.
struct JobRunCreation {
  std::string id;
  std::string job;         // its id
  std::string experiment;  // its name; empty: "Default"
  std::string user, name;
  std::vector<KeyValue> tags;
};

struct RunChange {
  std::optional<RunStatus> status;
  std::optional<int64_t> end;
  std::string name;     // empty: it stays
  bool by_job = false;  // by a job's token: of a job that has ended status and end stay
};

struct Page {
  int64_t limit = 0;
  int64_t offset = 0;
};

struct RunPage {
  std::vector<Run> runs;
  bool more = false;  // than these
};

struct ExperimentPage {
  std::vector<Experiment> experiments;
  bool more = false;
};

// LogRequest is one batch among others.
struct LogRequest {
  std::string run;
  Batch batch;
  absl::Status status;  // what became of it
};

// JobMetric is what a job has logged of a metric.
struct JobMetric {
  std::vector<double> values;            // in the order of History
  std::vector<std::string> other_names;  // of metrics of its runs, some
};

struct ModelPage {
  std::vector<Model> models;
  bool more = false;
};

class TrackingStore {
 public:
  // Opens the file or makes it, with the experiment "Default" of id 0.
  static absl::StatusOr<std::unique_ptr<TrackingStore>> Open(const std::filesystem::path& path,
                                                             const base::Clock* clock,
                                                             TrackingStoreOptions options = {});

  absl::StatusOr<int64_t> CreateExperiment(const std::string& name, const std::string& location,
                                           const std::vector<KeyValue>& tags);
  absl::StatusOr<Experiment> GetExperiment(int64_t id);
  absl::StatusOr<Experiment> GetExperimentByName(const std::string& name);
  absl::StatusOr<ExperimentPage> SearchExperiments(const SearchRequest& request);
  absl::Status RenameExperiment(int64_t id, const std::string& name);
  // Its runs go and come back with it.
  absl::Status DeleteExperiment(int64_t id);
  absl::Status RestoreExperiment(int64_t id);
  absl::Status SetExperimentTag(int64_t id, const KeyValue& tag);
  absl::Status DeleteExperimentTag(int64_t id, const std::string& key);

  // FailedPrecondition for one of a job that has ended.
  absl::StatusOr<Run> CreateRun(const RunCreation& creation);
  absl::StatusOr<Run> GetRun(const std::string& id);
  absl::StatusOr<RunInfo> GetRunInfo(const std::string& id);
  absl::StatusOr<RunInfo> UpdateRun(const std::string& id, const RunChange& change);
  absl::Status DeleteRun(const std::string& id);
  absl::Status RestoreRun(const std::string& id);
  // A page ends before `limit` where its runs would take too much memory, after one at least. All
  // searches: InvalidArgument if it takes longer than search_limit.
  absl::StatusOr<RunPage> SearchRuns(const SearchRequest& request,
                                     const std::vector<int64_t>& experiments);

  // Makes a job's own run, and its experiment, unless they are there; one that is over runs again.
  // Writes nothing where it is there and runs.
  // InvalidArgument if either has been deleted.
  absl::StatusOr<RunInfo> BeginJobRun(const JobRunCreation& creation);
  // Settles a job's own run, with this end, and ends those of its others that nobody has ended; the
  // end of one that is over stays. OK if there is none.
  absl::Status EndJobRun(const std::string& id, RunStatus status, int64_t end);
  // Returns the own runs of jobs that are not settled.
  absl::StatusOr<std::vector<RunInfo>> UnsettledRuns();
  // Returns a job's own run; where it has no metrics, with those, and the params, of the first of
  // the job's others that has any. NotFound.
  absl::StatusOr<Run> GetJobRun(const std::string& id);
  // Returns what a job has logged of a metric to its own run; else to the first of its others that
  // has any of it.
  absl::StatusOr<JobMetric> MetricOfJob(const std::string& job_run, const std::string& key);

  // Writes batches, which have been checked, in one transaction, each whole or, with an error, not
  // at all; each by itself where that fails, so that none fails with another.
  void LogTogether(const std::vector<LogRequest*>& requests);
  absl::Status DeleteTag(const std::string& run, const std::string& key);
  absl::Status LogInputs(const std::string& run, const std::vector<DatasetInput>& inputs,
                         const std::vector<ModelOfRun>& models);
  absl::Status LogOutputs(const std::string& run, const std::vector<ModelOfRun>& models);
  // Adds a model's description, a JSON object, to those of the run's tag for them.
  absl::Status LogModel(const std::string& run, const std::string& description);

  // Returns up to `limit` points of a metric, by step and time, those after that one; none of a
  // metric that the run does not have.
  absl::StatusOr<std::vector<Point>> History(const std::string& run, const std::string& key,
                                             const std::optional<Point>& after, int64_t limit);
  // Returns up to `most` of them, spread evenly over their number; see SamplePoints.
  absl::StatusOr<std::vector<Point>> Sample(const std::string& run, const std::string& key,
                                            const StepRange& range, int64_t most);

  // Makes the id, the artifact_uri and the times of a logged model.
  absl::StatusOr<Model> CreateModel(const Model& creation);
  absl::StatusOr<Model> GetModel(const std::string& id, bool also_deleted = false);
  absl::StatusOr<Model> FinalizeModel(const std::string& id, ModelStatus status);
  absl::Status DeleteModel(const std::string& id);
  absl::StatusOr<Model> SetModelTags(const std::string& id, const std::vector<KeyValue>& tags);
  absl::Status DeleteModelTag(const std::string& id, const std::string& key);
  absl::Status LogModelParams(const std::string& id, const std::vector<KeyValue>& params);
  absl::StatusOr<ModelPage> SearchModels(const SearchRequest& request,
                                         const std::vector<int64_t>& experiments);

 private:
  using Body = std::function<absl::Status(store::SqliteConnection&)>;
  TrackingStore(std::unique_ptr<store::SharedDatabase> database, const base::Clock* clock,
                TrackingStoreOptions options)
      : database_(std::move(database)),
        clock_(clock),
        search_limit_(options.search_limit),
        check_room_(std::move(options.check_room)) {}

  absl::Status Write(const Body& body);
  absl::Status Read(const Body& body, store::ReadKind kind = store::ReadKind::kShort);
  // Reads what a search finds, up to `limit` rows and some megabytes; InvalidArgument if that takes
  // too long. `query` asks for one row more than `limit`.
  template <typename Row, typename Select>
  absl::Status ReadPage(const SearchQuery& query, int64_t limit, const Select& select,
                        std::vector<Row>& rows, bool& more);
  absl::Status WriteBatches(const std::vector<LogRequest*>& requests);
  // Has `change` change a model that is there, and returns what came of it.
  absl::StatusOr<Model> ChangeModel(
      const std::string& id,
      const std::function<absl::Status(store::SqliteConnection&, Model&)>& change);
  absl::Status MarkRun(const std::string& id, bool deleted);
  int64_t Now() const { return absl::ToUnixMillis(clock_->Now()); }

  const std::unique_ptr<store::SharedDatabase> database_;
  const base::Clock* const clock_;
  const absl::Duration search_limit_;
  const std::function<absl::Status()> check_room_;
};

}  // namespace tutti::tracking
