#include "platform/tracking/rows/model_rows.h"

#include <cmath>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/tracking/rows/point_blocks.h"
#include "platform/tracking/values/tracking_limits.h"

namespace tutti::tracking {
namespace {

using store::CachedStatement;
using store::SqliteConnection;

#define TUTTI_MODEL_COLUMNS                                                                \
  "SELECT sequence, id, experiment, name, type, source_run, status, deleted, created_ms, " \
  "updated_ms, artifact_uri FROM models "

Model ModelIn(const CachedStatement& row) {
  return {.sequence = row->getColumn(0).getInt64(),
          .id = row->getColumn(1).getString(),
          .experiment = row->getColumn(2).getInt64(),
          .name = row->getColumn(3).getString(),
          .type = row->getColumn(4).getString(),
          .source_run = row->getColumn(5).getString(),
          .status = static_cast<ModelStatus>(row->getColumn(6).getInt()),
          .deleted = row->getColumn(7).getInt() != 0,
          .created = row->getColumn(8).getInt64(),
          .updated = row->getColumn(9).getInt64(),
          .artifact_uri = row->getColumn(10).getString()};
}

std::vector<KeyValue> TextsOfModel(SqliteConnection& sqlite, const char* sql, int64_t model) {
  std::vector<KeyValue> texts;
  const CachedStatement row(sqlite, sql);
  row->bind(1, model);
  while (row->executeStep()) {
    texts.push_back({row->getColumn(0).getString(), row->getColumn(1).getString()});
  }
  return texts;
}

void AddRest(SqliteConnection& sqlite, Model& model) {
  model.params = TextsOfModel(
      sqlite, "SELECT key, value FROM model_params WHERE model = ? ORDER BY key", model.sequence);
  model.tags = TextsOfModel(
      sqlite, "SELECT key, value FROM model_tags WHERE model = ? ORDER BY key", model.sequence);
  const CachedStatement row(sqlite,
                            "SELECT key, run, dataset_name, dataset_digest, bits, step, time_ms "
                            "FROM model_metrics WHERE model = ? ORDER BY key, run");
  row->bind(1, model.sequence);
  while (row->executeStep()) {
    Metric metric{.key = row->getColumn(0).getString(),
                  .point = {row->getColumn(5).getInt64(), row->getColumn(6).getInt64(),
                            ValueOf(row->getColumn(4).getInt64())},
                  .model = model.id,
                  .dataset_name = row->getColumn(2).getString(),
                  .dataset_digest = row->getColumn(3).getString()};
    model.metrics.push_back({std::move(metric), row->getColumn(1).getString()});
  }
}

std::optional<int64_t> SequenceOf(SqliteConnection& sqlite, const std::string& id) {
  const CachedStatement row(sqlite, "SELECT sequence FROM models WHERE id = ?");
  row->bind(1, id);
  return row->executeStep() ? std::optional(row->getColumn(0).getInt64()) : std::nullopt;
}

// One that is older than what is there is not noted.
void PutModelMetric(SqliteConnection& sqlite, int64_t model, const std::string& run,
                    const Metric& metric) {
  const CachedStatement put(
      sqlite,
      "INSERT INTO model_metrics VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT DO UPDATE "
      "SET value = ?6, bits = ?7, step = ?8, time_ms = ?9 WHERE (step, time_ms) <= (?8, ?9)");
  put->bind(1, model);
  put->bind(2, metric.key);
  put->bind(3, run);
  put->bind(4, metric.dataset_name);
  put->bind(5, metric.dataset_digest);
  if (!std::isnan(metric.point.value)) put->bind(6, metric.point.value);
  put->bind(7, BitsOf(metric.point.value));
  put->bind(8, metric.point.step);
  put->bind(9, metric.point.time);
  put->exec();
}

void PutText(SqliteConnection& sqlite, const char* sql, int64_t model, const KeyValue& text) {
  const CachedStatement put(sqlite, sql);
  put->bind(1, model);
  put->bind(2, text.key);
  put->bind(3, text.value);
  put->exec();
}

absl::Status CheckTextCount(SqliteConnection& sqlite, const char* sql, int64_t model) {
  const CachedStatement row(sqlite, sql);
  row->bind(1, model);
  row->executeStep();
  if (row->getColumn(0).getInt64() <= kMostTextsOfOthers) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("A logged model can have at most ", kMostTextsOfOthers, " params, and tags."));
}

}  // namespace

int64_t InsertModel(SqliteConnection& sqlite, const Model& model) {
  const CachedStatement insert(sqlite,
                               "INSERT INTO models (id, experiment, name, type, source_run, "
                               "status, created_ms, updated_ms, artifact_uri) "
                               "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
  insert->bind(1, model.id);
  insert->bind(2, model.experiment);
  insert->bind(3, model.name);
  insert->bind(4, model.type);
  insert->bind(5, model.source_run);
  insert->bind(6, static_cast<int>(model.status));
  insert->bind(7, model.created);
  insert->bind(8, model.updated);
  insert->bind(9, model.artifact_uri);
  insert->exec();
  return sqlite.getLastInsertRowid();
}

absl::StatusOr<Model> SelectModelOf(SqliteConnection& sqlite, int64_t sequence) {
  Model model;
  {
    const CachedStatement row(sqlite, TUTTI_MODEL_COLUMNS "WHERE sequence = ?");
    row->bind(1, sequence);
    if (!row->executeStep()) return absl::NotFoundError("there is no such logged model");
    model = ModelIn(row);
  }
  AddRest(sqlite, model);
  return model;
}

absl::StatusOr<Model> SelectModel(SqliteConnection& sqlite, const std::string& id,
                                  bool also_deleted) {
  const std::optional<int64_t> sequence = SequenceOf(sqlite, id);
  if (sequence) {
    TUTTI_ASSIGN_OR_RETURN(Model model, SelectModelOf(sqlite, *sequence));
    if (also_deleted || !model.deleted) return model;
  }
  return absl::NotFoundError(absl::StrCat("Logged model with ID '", id, "' not found."));
}

void UpdateModel(SqliteConnection& sqlite, const Model& model) {
  const CachedStatement update(
      sqlite, "UPDATE models SET status = ?, deleted = ?, updated_ms = ? WHERE sequence = ?");
  update->bind(1, static_cast<int>(model.status));
  update->bind(2, model.deleted ? 1 : 0);
  update->bind(3, model.updated);
  update->bind(4, model.sequence);
  update->exec();
}

absl::Status AddModelParams(SqliteConnection& sqlite, const Model& model,
                            const std::vector<KeyValue>& params) {
  std::map<std::string, std::string> known;
  for (const KeyValue& param : model.params) known.emplace(param.key, param.value);
  for (const KeyValue& param : params) {
    const auto former = known.find(param.key);
    if (former != known.end() && former->second != param.value) {
      return absl::InvalidArgumentError(
          absl::StrCat("Changing param values is not allowed. Param with key='", param.key,
                       "' of model '", model.id, "' is '", former->second, "'."));
    }
    PutText(sqlite, "INSERT OR IGNORE INTO model_params VALUES (?, ?, ?)", model.sequence, param);
  }
  return CheckTextCount(sqlite, "SELECT count(*) FROM model_params WHERE model = ?",
                        model.sequence);
}

absl::Status PutModelTags(SqliteConnection& sqlite, const Model& model,
                          const std::vector<KeyValue>& tags) {
  for (const KeyValue& tag : tags) {
    PutText(sqlite, "INSERT OR REPLACE INTO model_tags VALUES (?, ?, ?)", model.sequence, tag);
  }
  return CheckTextCount(sqlite, "SELECT count(*) FROM model_tags WHERE model = ?", model.sequence);
}

absl::Status RemoveModelTag(SqliteConnection& sqlite, const Model& model, const std::string& key) {
  const CachedStatement remove(sqlite, "DELETE FROM model_tags WHERE model = ? AND key = ?");
  remove->bind(1, model.sequence);
  remove->bind(2, key);
  if (remove->exec() > 0) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("No tag with key '", key, "' found for model with ID '", model.id, "'."));
}

void AddModelMetrics(SqliteConnection& sqlite, const std::string& run,
                     const std::vector<Metric>& metrics) {
  for (const Metric& metric : metrics) {
    if (metric.model.empty()) continue;
    const std::optional<int64_t> model = SequenceOf(sqlite, metric.model);
    if (model) PutModelMetric(sqlite, *model, run, metric);
  }
}

absl::Status AddModelsOfRun(SqliteConnection& sqlite, int64_t run, bool is_output,
                            const std::vector<ModelOfRun>& models) {
  for (const ModelOfRun& model : models) {
    TUTTI_RETURN_IF_ERROR(CheckLength("model_id", model.id, kMostIdLength));
    const CachedStatement put(sqlite, "INSERT OR REPLACE INTO models_of_runs VALUES (?, ?, ?, ?)");
    put->bind(1, run);
    put->bind(2, is_output ? 1 : 0);
    put->bind(3, model.id);
    put->bind(4, model.step);
    put->exec();
  }
  const CachedStatement row(sqlite,
                            "SELECT count(*) FROM models_of_runs WHERE run = ? AND is_output = ?");
  row->bind(1, run);
  row->bind(2, is_output ? 1 : 0);
  row->executeStep();
  if (row->getColumn(0).getInt64() <= kMostInputsOfRun) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("A run can use, and make, at most ", kMostInputsOfRun, " logged models."));
}

std::vector<ModelOfRun> ModelsOfRun(SqliteConnection& sqlite, int64_t run, bool is_output) {
  std::vector<ModelOfRun> models;
  const CachedStatement row(
      sqlite, "SELECT model, step FROM models_of_runs WHERE run = ? AND is_output = ?");
  row->bind(1, run);
  row->bind(2, is_output ? 1 : 0);
  while (row->executeStep()) {
    models.push_back({row->getColumn(0).getString(), row->getColumn(1).getInt64()});
  }
  return models;
}

}  // namespace tutti::tracking
