// Reads and writes the rows of experiments and their tags. Errors are in MLflow's words.
// Internal to platform/tracking.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "platform/store/sqlite_connection.h"
#include "platform/tracking/values/values.h"

namespace tutti::tracking {

// AlreadyExists if the name is taken, also by one that is deleted. Without a location its artifacts
// lie with the service.
absl::StatusOr<int64_t> InsertExperiment(store::SqliteConnection& sqlite,
                                         const Experiment& experiment);
// NotFound.
absl::StatusOr<Experiment> SelectExperiment(store::SqliteConnection& sqlite, int64_t id);
absl::StatusOr<Experiment> SelectExperimentByName(store::SqliteConnection& sqlite,
                                                  const std::string& name);
// InvalidArgument if it is deleted.
absl::Status CheckExperimentIsActive(const Experiment& experiment);
absl::Status RenameExperiment(store::SqliteConnection& sqlite, int64_t id, const std::string& name,
                              int64_t now);
// Marks it and its runs as deleted, or not; NotFound if it is so already.
absl::Status MarkExperiment(store::SqliteConnection& sqlite, int64_t id, bool deleted, int64_t now);
absl::Status PutExperimentTag(store::SqliteConnection& sqlite, int64_t id, const KeyValue& tag);
absl::Status RemoveExperimentTag(store::SqliteConnection& sqlite, int64_t id,
                                 const std::string& key);

}  // namespace tutti::tracking
