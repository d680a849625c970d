#include "platform/tracking/rows/run_rows.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/tracking/values/tracking_limits.h"

namespace tutti::tracking {
namespace {

using store::CachedStatement;
using store::SqliteConnection;

#define TUTTI_RUN_COLUMNS                                                                          \
  "SELECT sequence, id, experiment, name, user, status, start_ms, end_ms, deleted, artifact_uri, " \
  "job_run, job, settled "

RunInfo RunIn(const CachedStatement& row) {
  RunInfo run{.sequence = row->getColumn(0).getInt64(),
              .id = row->getColumn(1).getString(),
              .name = row->getColumn(3).getString(),
              .experiment = row->getColumn(2).getInt64(),
              .user = row->getColumn(4).getString(),
              .status = static_cast<RunStatus>(row->getColumn(5).getInt()),
              .start = row->getColumn(6).getInt64(),
              .end = std::nullopt,
              .deleted = row->getColumn(8).getInt() != 0,
              .artifact_uri = row->getColumn(9).getString(),
              .job_run = row->getColumn(10).getString(),
              .job = row->getColumn(11).getString(),
              .settled = row->getColumn(12).getInt() != 0};
  if (!row->getColumn(7).isNull()) run.end = row->getColumn(7).getInt64();
  return run;
}

std::vector<RunInfo> RunsIn(const CachedStatement& row) {
  std::vector<RunInfo> runs;
  while (row->executeStep()) runs.push_back(RunIn(row));
  return runs;
}

// Keys and values of a run, in the order of keys.
std::vector<KeyValue> SelectKeyValues(SqliteConnection& sqlite, const char* sql, int64_t run) {
  std::vector<KeyValue> rows;
  const CachedStatement row(sqlite, sql);
  row->bind(1, run);
  while (row->executeStep()) {
    rows.push_back({row->getColumn(0).getString(), row->getColumn(1).getString()});
  }
  return rows;
}

std::vector<KeyValue> TagsFromJson(const std::string& text) {
  std::vector<KeyValue> tags;
  const nlohmann::json object = nlohmann::json::parse(text, nullptr, false);
  for (const auto& [key, value] : object.items()) {
    if (value.is_string()) tags.push_back({key, value.get<std::string>()});
  }
  return tags;
}

std::string TagsJson(const std::vector<KeyValue>& tags) {
  nlohmann::json object = nlohmann::json::object();
  for (const KeyValue& tag : tags) object[tag.key] = tag.value;
  return object.dump();
}

std::vector<DatasetInput> SelectInputs(SqliteConnection& sqlite, int64_t run) {
  std::vector<DatasetInput> inputs;
  const CachedStatement row(sqlite,
                            "SELECT d.name, d.digest, d.source_type, d.source, d.schema, "
                            "d.profile, i.tags FROM inputs i JOIN datasets d ON d.id = i.dataset "
                            "WHERE i.run = ? ORDER BY d.id");
  row->bind(1, run);
  while (row->executeStep()) {
    inputs.push_back({{row->getColumn(0).getString(), row->getColumn(1).getString(),
                       row->getColumn(2).getString(), row->getColumn(3).getString(),
                       row->getColumn(4).getString(), row->getColumn(5).getString()},
                      TagsFromJson(row->getColumn(6).getString())});
  }
  return inputs;
}

std::optional<std::string> SelectParam(SqliteConnection& sqlite, int64_t run,
                                       const std::string& key) {
  const CachedStatement row(sqlite, "SELECT value FROM params WHERE run = ? AND key = ?");
  row->bind(1, run);
  row->bind(2, key);
  return row->executeStep() ? std::optional(row->getColumn(0).getString()) : std::nullopt;
}

void PutKeyValue(SqliteConnection& sqlite, const char* sql, int64_t run, const KeyValue& row) {
  const CachedStatement put(sqlite, sql);
  put->bind(1, run);
  put->bind(2, row.key);
  put->bind(3, row.value);
  put->exec();
}

// `sql` adds to the count of a run, and returns it.
absl::Status CountNew(SqliteConnection& sqlite, const char* sql, int64_t run, int64_t added,
                      absl::string_view what) {
  if (added == 0) return absl::OkStatus();
  const CachedStatement update(sqlite, sql);
  update->bind(1, added);
  update->bind(2, run);
  update->executeStep();
  if (update->getColumn(0).getInt64() <= kMostTextsOfRun) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("A run can have at most ", kMostTextsOfRun, " ", what, "."));
}

absl::Status ParamDiffers(const RunInfo& run, const KeyValue& param, const std::string& former) {
  return absl::InvalidArgumentError(
      absl::StrCat("Changing param values is not allowed. Param with key='", param.key,
                   "' was already logged with value='", former, "' for run ID='", run.id,
                   "'. Attempted logging new value '", param.value, "'."));
}

// Returns the data set of that name and digest in the experiment, which is added if there is none.
int64_t DatasetOf(SqliteConnection& sqlite, int64_t experiment, const Dataset& dataset) {
  {
    const CachedStatement insert(sqlite,
                                 "INSERT OR IGNORE INTO datasets (experiment, name, digest, "
                                 "source_type, source, schema, profile) "
                                 "VALUES (?, ?, ?, ?, ?, ?, ?)");
    insert->bind(1, experiment);
    insert->bind(2, dataset.name);
    insert->bind(3, dataset.digest);
    insert->bind(4, dataset.source_type);
    insert->bind(5, dataset.source);
    insert->bind(6, dataset.schema);
    insert->bind(7, dataset.profile);
    insert->exec();
  }
  const CachedStatement row(
      sqlite, "SELECT id FROM datasets WHERE experiment = ? AND name = ? AND digest = ?");
  row->bind(1, experiment);
  row->bind(2, dataset.name);
  row->bind(3, dataset.digest);
  row->executeStep();
  return row->getColumn(0).getInt64();
}

}  // namespace

int64_t InsertRun(SqliteConnection& sqlite, const RunInfo& run) {
  const CachedStatement insert(sqlite,
                               "INSERT INTO runs (id, experiment, name, user, status, start_ms, "
                               "artifact_uri, job_run, job) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
  insert->bind(1, run.id);
  insert->bind(2, run.experiment);
  insert->bind(3, run.name);
  insert->bind(4, run.user);
  insert->bind(5, static_cast<int>(run.status));
  insert->bind(6, run.start);
  insert->bind(7, run.artifact_uri);
  insert->bind(8, run.job_run);
  insert->bind(9, run.job);
  insert->exec();
  return sqlite.getLastInsertRowid();
}

absl::StatusOr<RunInfo> SelectRunInfo(SqliteConnection& sqlite, const std::string& id) {
  const CachedStatement row(sqlite, TUTTI_RUN_COLUMNS "FROM runs WHERE id = ?");
  row->bind(1, id);
  if (row->executeStep()) return RunIn(row);
  return absl::NotFoundError(absl::StrCat("Run with id=", id, " not found"));
}

absl::StatusOr<RunInfo> SelectActiveRun(SqliteConnection& sqlite, const std::string& id) {
  TUTTI_ASSIGN_OR_RETURN(RunInfo run, SelectRunInfo(sqlite, id));
  if (!run.deleted) return run;
  return absl::InvalidArgumentError(
      absl::StrCat("The run ", id, " must be in the 'active' state. Current state is deleted."));
}

std::vector<RunInfo> SelectRunsOfJob(SqliteConnection& sqlite, const std::string& job_run) {
  const CachedStatement row(
      sqlite, TUTTI_RUN_COLUMNS "FROM runs WHERE job_run = ? AND job_run != '' ORDER BY sequence");
  row->bind(1, job_run);
  return RunsIn(row);
}

std::vector<RunInfo> SelectUnsettledRuns(SqliteConnection& sqlite) {
  return RunsIn(CachedStatement(
      sqlite, TUTTI_RUN_COLUMNS "FROM runs WHERE job != '' AND settled = 0 ORDER BY sequence"));
}

std::optional<int64_t> SelectOtherRunWithMetrics(SqliteConnection& sqlite,
                                                 const std::string& job_run) {
  const CachedStatement row(sqlite,
                            "SELECT sequence FROM runs WHERE job_run = ? AND job_run != '' AND "
                            "id != job_run AND deleted = 0 AND EXISTS (SELECT 1 FROM series WHERE "
                            "series.run = runs.sequence) ORDER BY sequence LIMIT 1");
  row->bind(1, job_run);
  return row->executeStep() ? std::optional(row->getColumn(0).getInt64()) : std::nullopt;
}

bool IsSettled(SqliteConnection& sqlite, const std::string& job_run) {
  const CachedStatement row(sqlite, "SELECT settled FROM runs WHERE id = ?");
  row->bind(1, job_run);
  return row->executeStep() && row->getColumn(0).getInt() != 0;
}

Run SelectRun(SqliteConnection& sqlite, int64_t sequence) {
  Run run;
  {
    const CachedStatement row(sqlite, TUTTI_RUN_COLUMNS "FROM runs WHERE sequence = ?");
    row->bind(1, sequence);
    if (row->executeStep()) run.info = RunIn(row);
  }
  run.params =
      SelectKeyValues(sqlite, "SELECT key, value FROM params WHERE run = ? ORDER BY key", sequence);
  run.tags =
      SelectKeyValues(sqlite, "SELECT key, value FROM tags WHERE run = ? ORDER BY key", sequence);
  run.inputs = SelectInputs(sqlite, sequence);
  return run;
}

void UpdateRunInfo(SqliteConnection& sqlite, const RunInfo& run) {
  const CachedStatement update(
      sqlite,
      "UPDATE runs SET name = ?, status = ?, end_ms = ?, deleted = ?, settled = ? "
      "WHERE sequence = ?");
  update->bind(1, run.name);
  update->bind(2, static_cast<int>(run.status));
  if (run.end) {
    update->bind(3, *run.end);
  } else {
    update->bind(3);
  }
  update->bind(4, run.deleted ? 1 : 0);
  update->bind(5, run.settled ? 1 : 0);
  update->bind(6, run.sequence);
  update->exec();
}

absl::Status AddParams(SqliteConnection& sqlite, const RunInfo& run,
                       const std::vector<KeyValue>& params) {
  int64_t added = 0;
  for (const KeyValue& param : params) {
    const std::optional<std::string> former = SelectParam(sqlite, run.sequence, param.key);
    if (former && *former != param.value) return ParamDiffers(run, param, *former);
    if (former) continue;
    PutKeyValue(sqlite, "INSERT INTO params VALUES (?, ?, ?)", run.sequence, param);
    ++added;
  }
  return CountNew(sqlite,
                  "UPDATE runs SET param_count = param_count + ? WHERE sequence = ? "
                  "RETURNING param_count",
                  run.sequence, added, "params");
}

absl::Status PutTags(SqliteConnection& sqlite, const RunInfo& run,
                     const std::vector<KeyValue>& tags) {
  int64_t added = 0;
  for (const KeyValue& tag : tags) {
    if (tag.key == kRunNameTag) {
      TUTTI_RETURN_IF_ERROR(CheckLength("run_name", tag.value, kMostRunNameLength));
    }
    if (!SelectTag(sqlite, run.sequence, tag.key)) ++added;
    PutKeyValue(sqlite, "INSERT OR REPLACE INTO tags VALUES (?, ?, ?)", run.sequence, tag);
    if (tag.key != kRunNameTag || tag.value.empty()) continue;
    const CachedStatement rename(sqlite, "UPDATE runs SET name = ? WHERE sequence = ?");
    rename->bind(1, tag.value);
    rename->bind(2, run.sequence);
    rename->exec();
  }
  return CountNew(sqlite,
                  "UPDATE runs SET tag_count = tag_count + ? WHERE sequence = ? "
                  "RETURNING tag_count",
                  run.sequence, added, "tags");
}

std::optional<std::string> SelectTag(SqliteConnection& sqlite, int64_t run,
                                     const std::string& key) {
  const CachedStatement row(sqlite, "SELECT value FROM tags WHERE run = ? AND key = ?");
  row->bind(1, run);
  row->bind(2, key);
  return row->executeStep() ? std::optional(row->getColumn(0).getString()) : std::nullopt;
}

absl::Status RemoveTag(SqliteConnection& sqlite, const RunInfo& run, const std::string& key) {
  {
    const CachedStatement remove(sqlite, "DELETE FROM tags WHERE run = ? AND key = ?");
    remove->bind(1, run.sequence);
    remove->bind(2, key);
    if (remove->exec() == 0) {
      return absl::NotFoundError(
          absl::StrCat("No tag with name: ", key, " in run with id ", run.id));
    }
  }
  const CachedStatement count(sqlite,
                              "UPDATE runs SET tag_count = tag_count - 1 WHERE sequence = ?");
  count->bind(1, run.sequence);
  count->exec();
  return absl::OkStatus();
}

absl::Status AddInputs(SqliteConnection& sqlite, const RunInfo& run,
                       const std::vector<DatasetInput>& inputs) {
  for (const DatasetInput& input : inputs) {
    const int64_t dataset = DatasetOf(sqlite, run.experiment, input.dataset);
    const CachedStatement put(sqlite, "INSERT OR IGNORE INTO inputs VALUES (?, ?, ?)");
    put->bind(1, run.sequence);
    put->bind(2, dataset);
    put->bind(3, TagsJson(input.tags));
    put->exec();
  }
  const CachedStatement row(
      sqlite,
      "SELECT count(*), total(length(d.source) + length(d.schema) + length(d.profile) + "
      "length(i.tags)) FROM inputs i JOIN datasets d ON d.id = i.dataset WHERE i.run = ?");
  row->bind(1, run.sequence);
  row->executeStep();
  if (row->getColumn(1).getDouble() > static_cast<double>(kMostInputBytesOfRun)) {
    return absl::InvalidArgumentError(absl::StrCat("The data sets of a run can have at most ",
                                                   kMostInputBytesOfRun, " characters in all."));
  }
  if (row->getColumn(0).getInt64() <= kMostInputsOfRun) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("A run can have at most ", kMostInputsOfRun, " data sets."));
}

}  // namespace tutti::tracking
