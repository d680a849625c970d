// Reads and writes the rows of MLflow 3's logged models. Errors are in MLflow's words.
// Internal to platform/tracking.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "platform/store/sqlite_connection.h"
#include "platform/tracking/values/values.h"

namespace tutti::tracking {

// Returns its sequence.
int64_t InsertModel(store::SqliteConnection& sqlite, const Model& model);
// NotFound; also if it is deleted, unless that is asked for.
absl::StatusOr<Model> SelectModel(store::SqliteConnection& sqlite, const std::string& id,
                                  bool also_deleted);
absl::StatusOr<Model> SelectModelOf(store::SqliteConnection& sqlite, int64_t sequence);
// Writes what may change: status, deleted, when it was updated.
void UpdateModel(store::SqliteConnection& sqlite, const Model& model);
// InvalidArgument for a param that has another value, and for too many.
absl::Status AddModelParams(store::SqliteConnection& sqlite, const Model& model,
                            const std::vector<KeyValue>& params);
// InvalidArgument for too many.
absl::Status PutModelTags(store::SqliteConnection& sqlite, const Model& model,
                          const std::vector<KeyValue>& tags);
// NotFound.
absl::Status RemoveModelTag(store::SqliteConnection& sqlite, const Model& model,
                            const std::string& key);
// Notes those of the metrics that are of a model, if there is such a one.
void AddModelMetrics(store::SqliteConnection& sqlite, const std::string& run,
                     const std::vector<Metric>& metrics);
absl::Status AddModelsOfRun(store::SqliteConnection& sqlite, int64_t run, bool is_output,
                            const std::vector<ModelOfRun>& models);
std::vector<ModelOfRun> ModelsOfRun(store::SqliteConnection& sqlite, int64_t run, bool is_output);

}  // namespace tutti::tracking
