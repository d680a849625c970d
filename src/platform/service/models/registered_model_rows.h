// Converts registered models to rows of models.db and back. Inside service/models only; every
// function runs within the caller's transaction and throws SQLite::Exception when SQLite fails.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "platform/service/models/registered_model.h"
#include "platform/store/database.h"

namespace tutti::service {

// The error of a name that nobody has registered.
absl::Status NoModel(const std::string& name);

// The layouts of models.db, one step each.
const store::Migrations& ModelMigrations();

// Inserts the version, its name and its content where they are new; without a version it gets the
// next number, which no other version of the name has had. One that is there with the same content
// and type takes what is newly said of it. AlreadyExists if it is there with another. What a call
// with the creation's nonce has made is returned; InvalidArgument if it made something else.
absl::StatusOr<RegisteredVersion> PutVersion(store::SqliteConnection& sqlite,
                                             const ModelCreation& creation,
                                             const std::string& digest, absl::Time now);
// Finds one: by its version, "@ALIAS", or "" and "@latest". NotFound says which there are.
absl::StatusOr<ModelVersion> SelectVersion(store::SqliteConnection& sqlite, const std::string& name,
                                           const std::string& version);
// Return up to `limit` versions of a name, the newest first, those before that one; NotFound.
struct VersionPage {
  std::vector<ModelVersion> versions;
  int64_t before = 0;  // of the next page; 0: there is none
};
absl::StatusOr<VersionPage> SelectVersions(store::SqliteConnection& sqlite, const std::string& name,
                                           int64_t before, int limit);
ModelContent SelectContent(store::SqliteConnection& sqlite, const std::string& digest);

absl::StatusOr<RegisteredModel> SelectRegisteredModel(store::SqliteConnection& sqlite,
                                                      const std::string& name);
// Return up to `limit` models by name, those behind `after`; which of them `archived` says, or all.
std::vector<RegisteredModel> SelectRegisteredModels(store::SqliteConnection& sqlite,
                                                    const std::string& after, int limit,
                                                    std::optional<bool> archived);

// Change what is said of one. NotFound.
absl::Status ChangeVersion(store::SqliteConnection& sqlite, const std::string& name,
                           const std::string& version, const ModelChange& change, absl::Time now);
absl::Status ChangeRegisteredModel(store::SqliteConnection& sqlite, const std::string& name,
                                   const ModelChange& change, absl::Time now);
// Gives the alias to a version of the name, and takes it from the one that has it.
absl::Status PutModelAlias(store::SqliteConnection& sqlite, const std::string& name,
                           const std::string& alias, const std::string& version, absl::Time now);
absl::Status RemoveModelAlias(store::SqliteConnection& sqlite, const std::string& name,
                              const std::string& alias, absl::Time now);

// Says what was deleted, as no version has it any more.
struct DeletedContent {
  std::string digest;
  ModelContent content;
};
// Deletes one version, or with "" the name with all of them. NotFound.
absl::StatusOr<std::vector<DeletedContent>> DeleteVersions(store::SqliteConnection& sqlite,
                                                           const std::string& name,
                                                           const std::string& version);
bool HasContent(store::SqliteConnection& sqlite, const std::string& digest);

// How much is registered: contents that several versions have count once.
struct ModelTotals {
  int64_t versions = 0;
  uint64_t bytes = 0;
};
ModelTotals CountVersions(store::SqliteConnection& sqlite);

}  // namespace tutti::service
