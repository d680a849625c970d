#include "platform/tracking/store/tracking_store.h"

#include <sqlite3.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/deadline.h"
#include "base/hash.h"
#include "base/status.h"
#include "platform/tracking/rows/experiment_rows.h"
#include "platform/tracking/rows/model_rows.h"
#include "platform/tracking/rows/run_rows.h"
#include "platform/tracking/rows/series_rows.h"
#include "platform/tracking/rows/tracking_schema.h"
#include "platform/tracking/store/artifact_uri.h"
#include "platform/tracking/store/run_name.h"

namespace tutti::tracking {
namespace {

using store::SqliteConnection;

constexpr char kModelsTag[] = "mlflow.log-model.history";
constexpr size_t kMostBytesOfPage = 8 << 20;
constexpr int64_t kShortHistory = 2'000;  // points that are read within some milliseconds

constexpr size_t kBytesOfRow = 512;  // of an answer, beside its texts
constexpr size_t kBytesOfMetric = 128;

size_t BytesOf(const std::vector<KeyValue>& texts) {
  constexpr size_t kOfEach = 64;
  size_t bytes = 0;
  for (const KeyValue& text : texts) bytes += kOfEach + text.key.size() + text.value.size();
  return bytes;
}

size_t BytesOf(const std::vector<ModelOfRun>& models) {
  size_t bytes = 0;
  for (const ModelOfRun& model : models) bytes += kBytesOfMetric + model.id.size();
  return bytes;
}

size_t BytesOf(const Experiment& experiment) {
  return kBytesOfRow + experiment.name.size() + experiment.artifact_location.size() +
         BytesOf(experiment.tags);
}

size_t BytesOf(const Model& model) {
  size_t bytes = kBytesOfRow + model.name.size() + model.type.size() + model.source_run.size() +
                 model.artifact_uri.size() + BytesOf(model.tags) + BytesOf(model.params);
  for (const ModelMetric& metric : model.metrics) {
    bytes += kBytesOfRow + metric.metric.key.size() + metric.metric.dataset_name.size();
  }
  return bytes;
}

// Returns about how many bytes a run takes in an answer.
size_t BytesOf(const Run& run) {
  const RunInfo& info = run.info;
  size_t bytes = 2 * kBytesOfRow + info.name.size() + info.user.size() + info.artifact_uri.size() +
                 BytesOf(run.params) + BytesOf(run.tags) + BytesOf(run.model_inputs) +
                 BytesOf(run.model_outputs);
  for (const Metric& metric : run.metrics) bytes += kBytesOfMetric + metric.key.size();
  for (const DatasetInput& input : run.inputs) {
    const Dataset& dataset = input.dataset;
    bytes += kBytesOfRow + dataset.name.size() + dataset.source_type.size() +
             dataset.source.size() + dataset.schema.size() + dataset.profile.size() +
             BytesOf(input.tags);
  }
  return bytes;
}

absl::StatusOr<Run> WholeRun(SqliteConnection& sqlite, int64_t sequence) {
  Run run = SelectRun(sqlite, sequence);
  run.metrics = LastMetrics(sqlite, sequence);
  run.model_inputs = ModelsOfRun(sqlite, sequence, /*is_output=*/false);
  run.model_outputs = ModelsOfRun(sqlite, sequence, /*is_output=*/true);
  return run;
}

// Ends what a connection reads once it has taken too long, by an exception of SQLite's.
class ReadLimit {
 public:
  ReadLimit(SqliteConnection& sqlite, absl::Duration limit)
      : sqlite_(sqlite), end_(base::SteadyNow() + limit) {
    constexpr int kStepsBetween = 100;  // of SQLite's machine: one may compare a long text
    sqlite3_progress_handler(sqlite_.getHandle(), kStepsBetween, IsOver, this);
  }
  ~ReadLimit() { sqlite3_progress_handler(sqlite_.getHandle(), 0, nullptr, nullptr); }
  ReadLimit(const ReadLimit&) = delete;
  ReadLimit& operator=(const ReadLimit&) = delete;

 private:
  static int IsOver(void* self) {
    return base::SteadyNow() >= static_cast<const ReadLimit*>(self)->end_ ? 1 : 0;
  }

  SqliteConnection& sqlite_;
  const absl::Duration end_;
};

std::vector<int64_t> SelectIds(SqliteConnection& sqlite, const SearchQuery& query) {
  std::vector<int64_t> ids;
  SQLite::Statement rows(sqlite, query.sql);
  BindAll(query, rows);
  while (rows.executeStep()) ids.push_back(rows.getColumn(0).getInt64());
  return ids;
}

// Returns the name that the run was given, by its tag if not by itself.
absl::StatusOr<std::string> NameOf(const RunCreation& creation) {
  std::string name = creation.name;
  for (const KeyValue& tag : creation.tags) {
    if (tag.key != kRunNameTag || tag.value.empty()) continue;
    if (!name.empty() && name != tag.value) {
      return absl::InvalidArgumentError(absl::StrCat(
          "Both 'run_name' argument and 'mlflow.runName' tag are specified, but with different "
          "values (run_name='",
          name, "', mlflow.runName='", tag.value, "')."));
    }
    name = tag.value;
  }
  return name.empty() ? RandomRunName() : name;
}

// The tag's content is not parsed, since a client may have set it to anything.
absl::Status AddModel(SqliteConnection& sqlite, const RunInfo& run,
                      const std::string& description) {
  std::string models = SelectTag(sqlite, run.sequence, kModelsTag).value_or("[]");
  if (models.size() < 2 || models.front() != '[' || models.back() != ']') models = "[]";
  models.pop_back();
  absl::StrAppend(&models, models.size() > 1 ? "," : "", description, "]");
  if (CutTag(models).size() < models.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("The descriptions of this run's models take more than the ", kMostTagLength,
                     " characters of a tag."));
  }
  return PutTags(sqlite, run, {{kModelsTag, std::move(models)}});
}

absl::Status AddBatch(SqliteConnection& sqlite, const LogRequest& request) {
  TUTTI_ASSIGN_OR_RETURN(const RunInfo info, SelectActiveRun(sqlite, request.run));
  TUTTI_RETURN_IF_ERROR(AddParams(sqlite, info, request.batch.params));
  TUTTI_RETURN_IF_ERROR(AddMetrics(sqlite, info.sequence, request.batch.metrics));
  AddModelMetrics(sqlite, request.run, request.batch.metrics);
  return PutTags(sqlite, info, request.batch.tags);
}

}  // namespace

absl::StatusOr<std::unique_ptr<TrackingStore>> TrackingStore::Open(
    const std::filesystem::path& path, const base::Clock* clock, TrackingStoreOptions options) {
  store::DatabaseOptions with{.busy_timeout = options.busy_timeout,
                              .on_commit = std::move(options.on_commit)};
  TUTTI_ASSIGN_OR_RETURN(std::unique_ptr<store::SharedDatabase> database,
                         store::SharedDatabase::Open(path, AllMigrations(), std::move(with)));
  return std::unique_ptr<TrackingStore>(
      new TrackingStore(std::move(database), clock, std::move(options)));
}

absl::Status TrackingStore::Write(const Body& body) {
  if (check_room_) TUTTI_RETURN_IF_ERROR(check_room_());
  return database_->writes().Write(body);
}

absl::Status TrackingStore::Read(const Body& body, store::ReadKind kind) {
  return database_->Read(kind, body);
}

template <typename Row, typename Select>
absl::Status TrackingStore::ReadPage(const SearchQuery& query, int64_t limit, const Select& select,
                                     std::vector<Row>& rows, bool& more) {
  bool ended = false;  // by the limit
  const auto read = [&](SqliteConnection& sqlite) -> absl::Status {
    const ReadLimit until(sqlite, search_limit_);
    size_t bytes = 0;
    for (const int64_t id : SelectIds(sqlite, query)) {
      more = rows.size() == static_cast<size_t>(limit) || bytes > kMostBytesOfPage;
      if (more) break;
      TUTTI_ASSIGN_OR_RETURN(Row row, select(sqlite, id));
      bytes += BytesOf(row);
      rows.push_back(std::move(row));
    }
    return absl::OkStatus();
  };
  const absl::Status status = Read(
      [&](SqliteConnection& sqlite) {
        try {
          return read(sqlite);
        } catch (const SQLite::Exception& error) {
          ended = error.getErrorCode() == SQLITE_INTERRUPT;
          throw;
        }
      },
      store::ReadKind::kLong);
  if (!ended) return status;
  return absl::InvalidArgumentError(absl::StrCat("The search took longer than ",
                                                 absl::FormatDuration(search_limit_),
                                                 ": narrow its filter, or ask for fewer results."));
}

absl::StatusOr<int64_t> TrackingStore::CreateExperiment(const std::string& name,
                                                        const std::string& location,
                                                        const std::vector<KeyValue>& tags) {
  TUTTI_RETURN_IF_ERROR(CheckExperimentName(name));
  for (const KeyValue& tag : tags) TUTTI_RETURN_IF_ERROR(CheckExperimentTag(tag));
  int64_t id = 0;
  TUTTI_RETURN_IF_ERROR(Write([&](SqliteConnection& sqlite) -> absl::Status {
    const int64_t now = Now();
    TUTTI_ASSIGN_OR_RETURN(id, InsertExperiment(sqlite, {.name = name,
                                                         .artifact_location = location,
                                                         .created = now,
                                                         .updated = now,
                                                         .tags = tags}));
    return absl::OkStatus();
  }));
  return id;
}

absl::StatusOr<Experiment> TrackingStore::GetExperiment(int64_t id) {
  absl::StatusOr<Experiment> experiment;
  TUTTI_RETURN_IF_ERROR(Read([&](SqliteConnection& sqlite) {
    experiment = SelectExperiment(sqlite, id);
    return experiment.status();
  }));
  return experiment;
}

absl::StatusOr<Experiment> TrackingStore::GetExperimentByName(const std::string& name) {
  absl::StatusOr<Experiment> experiment;
  TUTTI_RETURN_IF_ERROR(Read([&](SqliteConnection& sqlite) {
    experiment = SelectExperimentByName(sqlite, name);
    return experiment.status();
  }));
  return experiment;
}

absl::StatusOr<ExperimentPage> TrackingStore::SearchExperiments(const SearchRequest& request) {
  ExperimentPage page;
  SearchRequest one_more = request;
  ++one_more.limit;
  TUTTI_RETURN_IF_ERROR(ReadPage(ExperimentsQuery(one_more), request.limit, SelectExperiment,
                                 page.experiments, page.more));
  return page;
}

absl::Status TrackingStore::RenameExperiment(int64_t id, const std::string& name) {
  TUTTI_RETURN_IF_ERROR(CheckExperimentName(name));
  return Write([&](SqliteConnection& sqlite) {
    return tracking::RenameExperiment(sqlite, id, name, Now());
  });
}

absl::Status TrackingStore::DeleteExperiment(int64_t id) {
  return Write([&](SqliteConnection& sqlite) { return MarkExperiment(sqlite, id, true, Now()); });
}

absl::Status TrackingStore::RestoreExperiment(int64_t id) {
  return Write([&](SqliteConnection& sqlite) { return MarkExperiment(sqlite, id, false, Now()); });
}

absl::Status TrackingStore::SetExperimentTag(int64_t id, const KeyValue& tag) {
  TUTTI_RETURN_IF_ERROR(CheckExperimentTag(tag));
  return Write([&](SqliteConnection& sqlite) { return PutExperimentTag(sqlite, id, tag); });
}

absl::Status TrackingStore::DeleteExperimentTag(int64_t id, const std::string& key) {
  return Write([&](SqliteConnection& sqlite) { return RemoveExperimentTag(sqlite, id, key); });
}

absl::StatusOr<Run> TrackingStore::CreateRun(const RunCreation& creation) {
  TUTTI_ASSIGN_OR_RETURN(const std::string name, NameOf(creation));
  for (const KeyValue& tag : creation.tags) TUTTI_RETURN_IF_ERROR(CheckKey("tag", tag.key));
  TUTTI_RETURN_IF_ERROR(CheckLength("user_id", creation.user, kMostUserLength));
  const std::string id = base::RandomHex(16);
  Run run;
  TUTTI_RETURN_IF_ERROR(Write([&](SqliteConnection& sqlite) -> absl::Status {
    TUTTI_ASSIGN_OR_RETURN(const Experiment experiment,
                           SelectExperiment(sqlite, creation.experiment));
    TUTTI_RETURN_IF_ERROR(CheckExperimentIsActive(experiment));
    if (!creation.job_run.empty() && IsSettled(sqlite, creation.job_run)) {
      return absl::FailedPreconditionError("The job that begins this run has ended.");
    }
    RunInfo info{.id = id,
                 .name = name,
                 .experiment = experiment.id,
                 .user = creation.user,
                 .start = creation.start,
                 .artifact_uri = ArtifactUri(experiment, id),
                 .job_run = creation.job_run};
    info.sequence = InsertRun(sqlite, info);
    std::vector<KeyValue> tags = creation.tags;
    tags.push_back({kRunNameTag, name});
    TUTTI_RETURN_IF_ERROR(PutTags(sqlite, info, tags));
    run = SelectRun(sqlite, info.sequence);
    return absl::OkStatus();
  }));
  return run;
}

absl::StatusOr<Run> TrackingStore::GetRun(const std::string& id) {
  Run run;
  TUTTI_RETURN_IF_ERROR(Read([&](SqliteConnection& sqlite) -> absl::Status {
    TUTTI_ASSIGN_OR_RETURN(const RunInfo info, SelectRunInfo(sqlite, id));
    TUTTI_ASSIGN_OR_RETURN(run, WholeRun(sqlite, info.sequence));
    return absl::OkStatus();
  }));
  return run;
}

absl::StatusOr<RunInfo> TrackingStore::GetRunInfo(const std::string& id) {
  absl::StatusOr<RunInfo> info;
  TUTTI_RETURN_IF_ERROR(Read([&](SqliteConnection& sqlite) {
    info = SelectRunInfo(sqlite, id);
    return info.status();
  }));
  return info;
}

absl::StatusOr<RunInfo> TrackingStore::UpdateRun(const std::string& id, const RunChange& change) {
  RunInfo info;
  TUTTI_RETURN_IF_ERROR(Write([&](SqliteConnection& sqlite) -> absl::Status {
    TUTTI_ASSIGN_OR_RETURN(info, SelectActiveRun(sqlite, id));
    const bool stays = change.by_job && IsSettled(sqlite, info.job_run);
    if (change.status && !stays) info.status = *change.status;
    if (change.end && !stays) info.end = *change.end;
    if (!change.name.empty()) {
      info.name = change.name;
      TUTTI_RETURN_IF_ERROR(PutTags(sqlite, info, {{kRunNameTag, change.name}}));
    }
    UpdateRunInfo(sqlite, info);
    return absl::OkStatus();
  }));
  return info;
}

absl::Status TrackingStore::MarkRun(const std::string& id, bool deleted) {
  return Write([&](SqliteConnection& sqlite) -> absl::Status {
    TUTTI_ASSIGN_OR_RETURN(RunInfo info, SelectRunInfo(sqlite, id));
    info.deleted = deleted;
    UpdateRunInfo(sqlite, info);
    return absl::OkStatus();
  });
}

absl::Status TrackingStore::DeleteRun(const std::string& id) { return MarkRun(id, true); }

absl::Status TrackingStore::RestoreRun(const std::string& id) { return MarkRun(id, false); }

absl::StatusOr<RunPage> TrackingStore::SearchRuns(const SearchRequest& request,
                                                  const std::vector<int64_t>& experiments) {
  RunPage page;
  SearchRequest one_more = request;
  ++one_more.limit;
  TUTTI_RETURN_IF_ERROR(
      ReadPage(RunsQuery(one_more, experiments), request.limit, WholeRun, page.runs, page.more));
  return page;
}

void TrackingStore::LogTogether(const std::vector<LogRequest*>& requests) {
  const absl::Status written = WriteBatches(requests);
  if (written.ok()) return;
  // If the disk is full, none of them has room; else one of them may have failed all.
  const bool is_full = absl::IsResourceExhausted(written);
  for (LogRequest* request : requests) {
    const bool again = requests.size() > 1 && !is_full;
    const absl::Status alone = again ? WriteBatches({request}) : written;
    if (!alone.ok()) request->status = alone;
  }
}

absl::Status TrackingStore::WriteBatches(const std::vector<LogRequest*>& requests) {
  return Write([&](SqliteConnection& sqlite) {
    for (LogRequest* request : requests) {
      sqlite.exec("SAVEPOINT batch");
      request->status = AddBatch(sqlite, *request);
      if (!request->status.ok()) sqlite.exec("ROLLBACK TO batch");
      sqlite.exec("RELEASE batch");
    }
    return absl::OkStatus();
  });
}

absl::Status TrackingStore::DeleteTag(const std::string& run, const std::string& key) {
  return Write([&](SqliteConnection& sqlite) -> absl::Status {
    TUTTI_ASSIGN_OR_RETURN(const RunInfo info, SelectActiveRun(sqlite, run));
    return RemoveTag(sqlite, info, key);
  });
}

absl::Status TrackingStore::LogInputs(const std::string& run,
                                      const std::vector<DatasetInput>& inputs,
                                      const std::vector<ModelOfRun>& models) {
  for (const DatasetInput& input : inputs) TUTTI_RETURN_IF_ERROR(CheckInput(input));
  return Write([&](SqliteConnection& sqlite) -> absl::Status {
    TUTTI_ASSIGN_OR_RETURN(const RunInfo info, SelectActiveRun(sqlite, run));
    TUTTI_RETURN_IF_ERROR(AddInputs(sqlite, info, inputs));
    return AddModelsOfRun(sqlite, info.sequence, /*is_output=*/false, models);
  });
}

absl::Status TrackingStore::LogOutputs(const std::string& run,
                                       const std::vector<ModelOfRun>& models) {
  return Write([&](SqliteConnection& sqlite) -> absl::Status {
    TUTTI_ASSIGN_OR_RETURN(const RunInfo info, SelectActiveRun(sqlite, run));
    return AddModelsOfRun(sqlite, info.sequence, /*is_output=*/true, models);
  });
}

absl::Status TrackingStore::LogModel(const std::string& run, const std::string& description) {
  return Write([&](SqliteConnection& sqlite) -> absl::Status {
    TUTTI_ASSIGN_OR_RETURN(const RunInfo info, SelectActiveRun(sqlite, run));
    return AddModel(sqlite, info, description);
  });
}

absl::StatusOr<std::vector<Point>> TrackingStore::History(const std::string& run,
                                                          const std::string& key,
                                                          const std::optional<Point>& after,
                                                          int64_t limit) {
  std::vector<Point> points;
  TUTTI_RETURN_IF_ERROR(Read(
      [&](SqliteConnection& sqlite) -> absl::Status {
        TUTTI_ASSIGN_OR_RETURN(const RunInfo info, SelectRunInfo(sqlite, run));
        const std::optional<int64_t> series = FindSeries(sqlite, info.sequence, key);
        if (series) points = PointsAfter(sqlite, *series, after, limit);
        return absl::OkStatus();
      },
      limit > kShortHistory ? store::ReadKind::kLong : store::ReadKind::kShort));
  return points;
}

absl::StatusOr<std::vector<Point>> TrackingStore::Sample(const std::string& run,
                                                         const std::string& key,
                                                         const StepRange& range, int64_t most) {
  std::vector<Point> points;
  TUTTI_RETURN_IF_ERROR(Read(
      [&](SqliteConnection& sqlite) -> absl::Status {
        TUTTI_ASSIGN_OR_RETURN(const RunInfo info, SelectRunInfo(sqlite, run));
        const std::optional<int64_t> series = FindSeries(sqlite, info.sequence, key);
        if (series) points = SamplePoints(sqlite, *series, range, most);
        return absl::OkStatus();
      },
      store::ReadKind::kLong));
  return points;
}

absl::StatusOr<Model> TrackingStore::CreateModel(const Model& creation) {
  TUTTI_RETURN_IF_ERROR(CheckModel(creation));
  Model model = creation;
  model.id = absl::StrCat("m-", base::RandomHex(16));
  if (model.name.empty()) model.name = RandomRunName();
  TUTTI_RETURN_IF_ERROR(Write([&](SqliteConnection& sqlite) -> absl::Status {
    TUTTI_ASSIGN_OR_RETURN(const Experiment experiment, SelectExperiment(sqlite, model.experiment));
    TUTTI_RETURN_IF_ERROR(CheckExperimentIsActive(experiment));
    model.created = model.updated = Now();
    model.artifact_uri = ArtifactUri(experiment, absl::StrCat("models/", model.id));
    model.sequence = InsertModel(sqlite, model);
    TUTTI_RETURN_IF_ERROR(PutModelTags(sqlite, model, model.tags));
    return AddModelParams(sqlite, model, model.params);
  }));
  return model;
}

absl::StatusOr<Model> TrackingStore::GetModel(const std::string& id, bool also_deleted) {
  absl::StatusOr<Model> model;
  TUTTI_RETURN_IF_ERROR(Read([&](SqliteConnection& sqlite) {
    model = SelectModel(sqlite, id, also_deleted);
    return model.status();
  }));
  return model;
}

absl::StatusOr<Model> TrackingStore::ChangeModel(
    const std::string& id, const std::function<absl::Status(SqliteConnection&, Model&)>& change) {
  Model model;
  TUTTI_RETURN_IF_ERROR(Write([&](SqliteConnection& sqlite) -> absl::Status {
    TUTTI_ASSIGN_OR_RETURN(model, SelectModel(sqlite, id, /*also_deleted=*/false));
    TUTTI_RETURN_IF_ERROR(change(sqlite, model));
    model.updated = Now();
    UpdateModel(sqlite, model);
    TUTTI_ASSIGN_OR_RETURN(model, SelectModel(sqlite, id, /*also_deleted=*/true));
    return absl::OkStatus();
  }));
  return model;
}

absl::StatusOr<Model> TrackingStore::FinalizeModel(const std::string& id, ModelStatus status) {
  return ChangeModel(id, [status](SqliteConnection&, Model& model) {
    model.status = status;
    return absl::OkStatus();
  });
}

absl::Status TrackingStore::DeleteModel(const std::string& id) {
  return ChangeModel(id,
                     [](SqliteConnection&, Model& model) {
                       model.deleted = true;
                       return absl::OkStatus();
                     })
      .status();
}

absl::StatusOr<Model> TrackingStore::SetModelTags(const std::string& id,
                                                  const std::vector<KeyValue>& tags) {
  for (const KeyValue& tag : tags) TUTTI_RETURN_IF_ERROR(CheckKey("tag", tag.key));
  return ChangeModel(id, [&](SqliteConnection& sqlite, Model& model) {
    return PutModelTags(sqlite, model, tags);
  });
}

absl::Status TrackingStore::DeleteModelTag(const std::string& id, const std::string& key) {
  return ChangeModel(id, [&](SqliteConnection& sqlite,
                             Model& model) { return RemoveModelTag(sqlite, model, key); })
      .status();
}

absl::Status TrackingStore::LogModelParams(const std::string& id,
                                           const std::vector<KeyValue>& params) {
  for (const KeyValue& param : params) TUTTI_RETURN_IF_ERROR(CheckKey("param", param.key));
  return ChangeModel(id, [&](SqliteConnection& sqlite,
                             Model& model) { return AddModelParams(sqlite, model, params); })
      .status();
}

absl::StatusOr<ModelPage> TrackingStore::SearchModels(const SearchRequest& request,
                                                      const std::vector<int64_t>& experiments) {
  ModelPage page;
  SearchRequest one_more = request;
  ++one_more.limit;
  TUTTI_RETURN_IF_ERROR(ReadPage(ModelsQuery(one_more, experiments), request.limit, SelectModelOf,
                                 page.models, page.more));
  return page;
}

}  // namespace tutti::tracking
