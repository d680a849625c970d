// These functions convert cordons, sealed secrets and notes of removed files to rows of the
// database and back. Only the store itself uses them; every function runs within the caller's
// transaction and throws SQLite::Exception when SQLite fails.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "platform/store/database.h"
#include "platform/store/store.h"

namespace tutti::store {

// Return what there is: all, by name, or that of one node; nothing if it has none.
std::vector<Cordon> SelectCordons(SQLite::Database& sqlite);
std::optional<Cordon> CordonOf(SQLite::Database& sqlite, const std::string& node);
// Writes the cordon of `node`; another one of that node gives way. Nothing: the node has none then.
void PutCordon(SQLite::Database& sqlite, const std::string& node,
               const std::optional<Cordon>& cordon);

// Return the same of secrets.
std::vector<SealedSecret> SelectSecrets(SQLite::Database& sqlite);
std::set<std::string> SelectSecretNames(SQLite::Database& sqlite);
std::optional<SealedSecret> SecretOf(SQLite::Database& sqlite, const std::string& name);
// Writes the secret; another one of that name gives way, but for the time at which it was created.
// Nothing: it is removed.
void PutSecret(SQLite::Database& sqlite, const std::string& name,
               const std::optional<SealedSecret>& secret);

// Notes it of the jobs that are there and have no such note yet, and returns those.
std::vector<std::string> InsertRemoved(SqliteConnection& sqlite,
                                       const std::vector<std::string>& jobs,
                                       const RemovedFiles& removed);
void DeleteRemoved(SqliteConnection& sqlite, const std::vector<std::string>& jobs,
                   absl::string_view kind);
std::vector<RemovedFiles> SelectRemoved(SQLite::Database& sqlite, absl::string_view job_id);

}  // namespace tutti::store
