#include "platform/tracking/rows/experiment_rows.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/tracking/values/tracking_limits.h"

namespace tutti::tracking {
namespace {

using store::CachedStatement;
using store::SqliteConnection;

absl::Status NoExperiment(int64_t id) {
  return absl::NotFoundError(absl::StrCat("No Experiment with id=", id, " exists"));
}

// Reads an experiment without its tags.
Experiment ExperimentIn(const CachedStatement& row) {
  return {.id = row->getColumn(0).getInt64(),
          .name = row->getColumn(1).getString(),
          .artifact_location = row->getColumn(2).getString(),
          .deleted = row->getColumn(3).getInt() != 0,
          .created = row->getColumn(4).getInt64(),
          .updated = row->getColumn(5).getInt64()};
}

std::vector<KeyValue> TagsOfExperiment(SqliteConnection& sqlite, int64_t id) {
  std::vector<KeyValue> tags;
  const CachedStatement rows(
      sqlite, "SELECT key, value FROM experiment_tags WHERE experiment = ? ORDER BY key");
  rows->bind(1, id);
  while (rows->executeStep()) {
    tags.push_back({rows->getColumn(0).getString(), rows->getColumn(1).getString()});
  }
  return tags;
}

absl::Status NameIsTaken(const Experiment& experiment) {
  return absl::AlreadyExistsError(
      absl::StrCat("Experiment(name=", experiment.name, ") already exists",
                   experiment.deleted ? absl::StrCat(" in deleted state: restore it (id ",
                                                     experiment.id, ") or choose another name.")
                                      : "."));
}

void UpsertTag(SqliteConnection& sqlite, int64_t id, const KeyValue& tag) {
  const CachedStatement put(sqlite, "INSERT OR REPLACE INTO experiment_tags VALUES (?, ?, ?)");
  put->bind(1, id);
  put->bind(2, tag.key);
  put->bind(3, tag.value);
  put->exec();
}

absl::Status CheckTagCount(SqliteConnection& sqlite, int64_t id) {
  const CachedStatement row(sqlite, "SELECT count(*) FROM experiment_tags WHERE experiment = ?");
  row->bind(1, id);
  row->executeStep();
  if (row->getColumn(0).getInt64() <= kMostTextsOfOthers) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("An experiment can have at most ", kMostTextsOfOthers, " tags."));
}

void SetLocation(SqliteConnection& sqlite, int64_t id) {
  const CachedStatement update(sqlite, "UPDATE experiments SET artifact_location = ? WHERE id = ?");
  update->bind(1, absl::StrCat("mlflow-artifacts:/", id));
  update->bind(2, id);
  update->exec();
}

}  // namespace

absl::StatusOr<int64_t> InsertExperiment(SqliteConnection& sqlite, const Experiment& experiment) {
  const auto known = SelectExperimentByName(sqlite, experiment.name);
  if (known.ok()) return NameIsTaken(*known);
  {
    const CachedStatement insert(
        sqlite,
        "INSERT INTO experiments (name, artifact_location, created_ms, updated_ms) "
        "VALUES (?, ?, ?, ?)");
    insert->bind(1, experiment.name);
    insert->bind(2, experiment.artifact_location);
    insert->bind(3, experiment.created);
    insert->bind(4, experiment.updated);
    insert->exec();
  }
  const int64_t id = sqlite.getLastInsertRowid();
  if (experiment.artifact_location.empty()) SetLocation(sqlite, id);
  for (const KeyValue& tag : experiment.tags) UpsertTag(sqlite, id, tag);
  TUTTI_RETURN_IF_ERROR(CheckTagCount(sqlite, id));
  return id;
}

absl::StatusOr<Experiment> SelectExperiment(SqliteConnection& sqlite, int64_t id) {
  Experiment experiment;
  {
    const CachedStatement row(sqlite,
                              "SELECT id, name, artifact_location, deleted, created_ms, updated_ms "
                              "FROM experiments WHERE id = ?");
    row->bind(1, id);
    if (!row->executeStep()) return NoExperiment(id);
    experiment = ExperimentIn(row);
  }
  experiment.tags = TagsOfExperiment(sqlite, id);
  return experiment;
}

absl::StatusOr<Experiment> SelectExperimentByName(SqliteConnection& sqlite,
                                                  const std::string& name) {
  int64_t id = 0;
  {
    const CachedStatement row(sqlite, "SELECT id FROM experiments WHERE name = ?");
    row->bind(1, name);
    if (!row->executeStep()) {
      return absl::NotFoundError(absl::StrCat("Could not find experiment with name '", name, "'"));
    }
    id = row->getColumn(0).getInt64();
  }
  return SelectExperiment(sqlite, id);
}

absl::Status CheckExperimentIsActive(const Experiment& experiment) {
  if (!experiment.deleted) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("The experiment ", experiment.id,
                   " must be in the 'active' state. Current state is deleted."));
}

absl::Status RenameExperiment(SqliteConnection& sqlite, int64_t id, const std::string& name,
                              int64_t now) {
  TUTTI_ASSIGN_OR_RETURN(const Experiment experiment, SelectExperiment(sqlite, id));
  if (experiment.deleted) {
    return absl::FailedPreconditionError("Cannot rename a non-active experiment.");
  }
  const auto known = SelectExperimentByName(sqlite, name);
  if (known.ok() && known->id != id) return NameIsTaken(*known);
  const CachedStatement update(sqlite,
                               "UPDATE experiments SET name = ?, updated_ms = ? WHERE id = ?");
  update->bind(1, name);
  update->bind(2, now);
  update->bind(3, id);
  update->exec();
  return absl::OkStatus();
}

absl::Status MarkExperiment(SqliteConnection& sqlite, int64_t id, bool deleted, int64_t now) {
  TUTTI_ASSIGN_OR_RETURN(const Experiment experiment, SelectExperiment(sqlite, id));
  if (experiment.deleted == deleted) return NoExperiment(id);
  {
    const CachedStatement update(sqlite,
                                 "UPDATE experiments SET deleted = ?, updated_ms = ? WHERE id = ?");
    update->bind(1, deleted ? 1 : 0);
    update->bind(2, now);
    update->bind(3, id);
    update->exec();
  }
  const CachedStatement runs(sqlite, "UPDATE runs SET deleted = ? WHERE experiment = ?");
  runs->bind(1, deleted ? 1 : 0);
  runs->bind(2, id);
  runs->exec();
  return absl::OkStatus();
}

absl::Status PutExperimentTag(SqliteConnection& sqlite, int64_t id, const KeyValue& tag) {
  TUTTI_ASSIGN_OR_RETURN(const Experiment experiment, SelectExperiment(sqlite, id));
  TUTTI_RETURN_IF_ERROR(CheckExperimentIsActive(experiment));
  UpsertTag(sqlite, id, tag);
  return CheckTagCount(sqlite, id);
}

absl::Status RemoveExperimentTag(SqliteConnection& sqlite, int64_t id, const std::string& key) {
  TUTTI_ASSIGN_OR_RETURN(const Experiment experiment, SelectExperiment(sqlite, id));
  TUTTI_RETURN_IF_ERROR(CheckExperimentIsActive(experiment));
  const CachedStatement remove(sqlite,
                               "DELETE FROM experiment_tags WHERE experiment = ? AND key = ?");
  remove->bind(1, id);
  remove->bind(2, key);
  if (remove->exec() > 0) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("No tag with name: ", key, " in experiment with id ", id));
}

}  // namespace tutti::tracking
