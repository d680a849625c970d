#include "platform/store/site_rows.h"

#include "absl/strings/str_cat.h"

namespace tutti::store {
namespace {

constexpr char kSelectCordon[] = "SELECT node, reason, time_us, author FROM cordons";
constexpr char kSelectSecret[] = "SELECT name, key_id, sealed, created_us, set_us FROM secrets";

// A name that is not known is a user's: nobody else takes that cordon off.
CordonAuthor CordonAuthorFromName(absl::string_view name) {
  for (const CordonAuthor author : {CordonAuthor::kCheck, CordonAuthor::kJobs}) {
    if (name == Name(author)) return author;
  }
  return CordonAuthor::kUser;
}

Cordon CordonAt(SQLite::Statement& row) {
  return {row.getColumn(0).getString(), row.getColumn(1).getString(),
          absl::FromUnixMicros(row.getColumn(2).getInt64()),
          CordonAuthorFromName(row.getColumn(3).getString())};
}

SealedSecret SecretAt(SQLite::Statement& row) {
  return {row.getColumn(0).getString(), row.getColumn(1).getString(), row.getColumn(2).getString(),
          absl::FromUnixMicros(row.getColumn(3).getInt64()),
          absl::FromUnixMicros(row.getColumn(4).getInt64())};
}

void Delete(SQLite::Database& sqlite, const char* sql, const std::string& key) {
  SQLite::Statement remove(sqlite, sql);
  remove.bind(1, key);
  remove.exec();
}

}  // namespace

std::vector<Cordon> SelectCordons(SQLite::Database& sqlite) {
  std::vector<Cordon> cordons;
  SQLite::Statement rows(sqlite, absl::StrCat(kSelectCordon, " ORDER BY node"));
  while (rows.executeStep()) cordons.push_back(CordonAt(rows));
  return cordons;
}

std::optional<Cordon> CordonOf(SQLite::Database& sqlite, const std::string& node) {
  SQLite::Statement row(sqlite, absl::StrCat(kSelectCordon, " WHERE node = ?"));
  row.bind(1, node);
  return row.executeStep() ? std::optional(CordonAt(row)) : std::nullopt;
}

void PutCordon(SQLite::Database& sqlite, const std::string& node,
               const std::optional<Cordon>& cordon) {
  if (!cordon) return Delete(sqlite, "DELETE FROM cordons WHERE node = ?", node);
  SQLite::Statement put(sqlite, "INSERT OR REPLACE INTO cordons VALUES (?, ?, ?, ?)");
  put.bind(1, node);
  put.bind(2, cordon->reason);
  put.bind(3, absl::ToUnixMicros(cordon->time));
  put.bind(4, std::string(Name(cordon->author)));
  put.exec();
}

std::vector<SealedSecret> SelectSecrets(SQLite::Database& sqlite) {
  std::vector<SealedSecret> secrets;
  SQLite::Statement rows(sqlite, absl::StrCat(kSelectSecret, " ORDER BY name"));
  while (rows.executeStep()) secrets.push_back(SecretAt(rows));
  return secrets;
}

std::set<std::string> SelectSecretNames(SQLite::Database& sqlite) {
  std::set<std::string> names;
  SQLite::Statement rows(sqlite, "SELECT name FROM secrets");
  while (rows.executeStep()) names.insert(rows.getColumn(0).getString());
  return names;
}

std::optional<SealedSecret> SecretOf(SQLite::Database& sqlite, const std::string& name) {
  SQLite::Statement row(sqlite, absl::StrCat(kSelectSecret, " WHERE name = ?"));
  row.bind(1, name);
  return row.executeStep() ? std::optional(SecretAt(row)) : std::nullopt;
}

void PutSecret(SQLite::Database& sqlite, const std::string& name,
               const std::optional<SealedSecret>& secret) {
  if (!secret) return Delete(sqlite, "DELETE FROM secrets WHERE name = ?", name);
  SQLite::Statement put(sqlite,
                        "INSERT INTO secrets VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (name) "
                        "DO UPDATE SET key_id = ?2, sealed = ?3, set_us = ?5");
  put.bind(1, name);
  put.bind(2, secret->key);
  put.bind(3, secret->sealed.data(), static_cast<int>(secret->sealed.size()));
  put.bind(4, absl::ToUnixMicros(secret->created));
  put.bind(5, absl::ToUnixMicros(secret->set));
  put.exec();
}

std::vector<std::string> InsertRemoved(SqliteConnection& sqlite,
                                       const std::vector<std::string>& jobs,
                                       const RemovedFiles& removed) {
  std::vector<std::string> noted;
  const CachedStatement note(sqlite,
                             "INSERT OR IGNORE INTO removed_files "
                             "SELECT sequence, ?2, ?3 FROM jobs WHERE id = ?1");
  for (const std::string& job : jobs) {
    note->reset();
    note->bind(1, job);
    note->bind(2, removed.kind);
    note->bind(3, absl::ToUnixMicros(removed.time));
    if (note->exec() > 0) noted.push_back(job);
  }
  return noted;
}

void DeleteRemoved(SqliteConnection& sqlite, const std::vector<std::string>& jobs,
                   absl::string_view kind) {
  const CachedStatement remove(sqlite,
                               "DELETE FROM removed_files WHERE kind = ?2 AND job = "
                               "(SELECT sequence FROM jobs WHERE id = ?1)");
  for (const std::string& job : jobs) {
    remove->reset();
    remove->bind(1, job);
    remove->bind(2, std::string(kind));
    remove->exec();
  }
}

std::vector<RemovedFiles> SelectRemoved(SQLite::Database& sqlite, absl::string_view job_id) {
  std::vector<RemovedFiles> removed;
  SQLite::Statement rows(sqlite,
                         "SELECT r.kind, r.time_us FROM jobs j JOIN removed_files r "
                         "ON r.job = j.sequence WHERE j.id = ? ORDER BY r.kind");
  rows.bind(1, std::string(job_id));
  while (rows.executeStep()) {
    removed.push_back(
        {rows.getColumn(0).getString(), absl::FromUnixMicros(rows.getColumn(1).getInt64())});
  }
  return removed;
}

}  // namespace tutti::store
