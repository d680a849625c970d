#include "platform/service/models/registered_model_rows.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "spec/json/json_fields.h"

namespace tutti::service {
namespace {

using nlohmann::json;
using store::CachedStatement;
using store::SqliteConnection;
using Texts = std::map<std::string, std::string>;

constexpr int64_t kMostNumbered = int64_t{1} << 40;  // versions beyond it are names
constexpr size_t kMostVersionsNamed = 20;            // versions, in an error

#define TUTTI_VERSION_COLUMNS                                                                   \
  "SELECT v.id, m.name, v.version, v.type, v.description, v.stage, v.tags, v.properties, "      \
  "v.archived, v.created_us, v.changed_us, c.digest, c.file, c.file_count, c.bytes, v.lineage " \
  "FROM versions v JOIN models m ON m.id = v.model JOIN contents c ON c.digest = v.content "
#define TUTTI_MODEL_SUMMARY                                                                \
  "SELECT id, name, description, tags, archived, created_us, changed_us, "                 \
  "(SELECT count(*) FROM versions v WHERE v.model = models.id), "                          \
  "coalesce((SELECT v.version FROM versions v WHERE v.model = models.id AND NOT archived " \
  "ORDER BY v.id DESC LIMIT 1), '') FROM models "

std::string JsonText(const Texts& texts) { return spec::Dump(texts); }

Texts TextsFrom(const std::string& text) {
  Texts texts;
  const json object = json::parse(text, nullptr, false);
  for (const auto& [key, value] : object.items()) {
    if (value.is_string()) texts[key] = value.get<std::string>();
  }
  return texts;
}

std::string JsonText(const std::vector<ModelFile>& files) {
  json list = json::array();
  for (const ModelFile& file : files) list.push_back({file.path, file.sha256, file.bytes});
  return spec::Dump(list);
}

std::vector<std::string> SelectTexts(SqliteConnection& sqlite, const char* sql, int64_t id) {
  std::vector<std::string> texts;
  const CachedStatement row(sqlite, sql);
  row->bind(1, id);
  while (row->executeStep()) texts.push_back(row->getColumn(0).getString());
  return texts;
}

struct VersionRow {
  int64_t id = 0;
  ModelVersion version;
};

VersionRow VersionIn(const CachedStatement& row) {
  const auto time = [&](int column) {
    return absl::FromUnixMicros(row->getColumn(column).getInt64());
  };
  return {row->getColumn(0).getInt64(),
          {.name = row->getColumn(1).getString(),
           .version = row->getColumn(2).getString(),
           .type = row->getColumn(3).getString(),
           .description = row->getColumn(4).getString(),
           .stage = row->getColumn(5).getString(),
           .tags = TextsFrom(row->getColumn(6).getString()),
           .properties = TextsFrom(row->getColumn(7).getString()),
           .archived = row->getColumn(8).getInt() != 0,
           .created = time(9),
           .changed = time(10),
           .digest = row->getColumn(11).getString(),
           .file = row->getColumn(12).getString(),
           .file_count = row->getColumn(13).getInt64(),
           .bytes = static_cast<uint64_t>(row->getColumn(14).getInt64()),
           .lineage = row->getColumn(15).getString()}};
}

void AddAliases(SqliteConnection& sqlite, VersionRow& row) {
  row.version.aliases =
      SelectTexts(sqlite, "SELECT alias FROM aliases WHERE version = ? ORDER BY alias", row.id);
}

std::optional<VersionRow> FirstVersion(SqliteConnection& sqlite, const CachedStatement& row) {
  if (!row->executeStep()) return std::nullopt;
  VersionRow found = VersionIn(row);
  AddAliases(sqlite, found);
  return found;
}

std::optional<int64_t> ModelId(SqliteConnection& sqlite, const std::string& name) {
  const CachedStatement row(sqlite, "SELECT id FROM models WHERE name = ?");
  row->bind(1, name);
  return row->executeStep() ? std::optional(row->getColumn(0).getInt64()) : std::nullopt;
}

absl::StatusOr<int64_t> FindModel(SqliteConnection& sqlite, const std::string& name) {
  const auto id = ModelId(sqlite, name);
  return id ? absl::StatusOr<int64_t>(*id) : NoModel(name);
}

std::optional<VersionRow> LatestVersion(SqliteConnection& sqlite, int64_t model) {
  const CachedStatement row(sqlite, TUTTI_VERSION_COLUMNS
                            "WHERE v.model = ? AND NOT v.archived ORDER BY v.id DESC LIMIT 1");
  row->bind(1, model);
  return FirstVersion(sqlite, row);
}

std::optional<VersionRow> VersionOfAlias(SqliteConnection& sqlite, int64_t model,
                                         const std::string& alias) {
  const CachedStatement row(
      sqlite, TUTTI_VERSION_COLUMNS
      "WHERE v.id = (SELECT a.version FROM aliases a WHERE a.model = ? AND a.alias = ?)");
  row->bind(1, model);
  row->bind(2, alias);
  return FirstVersion(sqlite, row);
}

std::optional<VersionRow> VersionByName(SqliteConnection& sqlite, int64_t model,
                                        const std::string& version) {
  const CachedStatement row(sqlite, TUTTI_VERSION_COLUMNS "WHERE v.model = ? AND v.version = ?");
  row->bind(1, model);
  row->bind(2, version);
  return FirstVersion(sqlite, row);
}

absl::Status NoVersion(SqliteConnection& sqlite, int64_t model, const std::string& name,
                       absl::string_view asked) {
  std::vector<std::string> there = SelectTexts(
      sqlite, "SELECT version FROM versions WHERE model = ? ORDER BY id DESC LIMIT 21", model);
  const bool more = there.size() > kMostVersionsNamed;
  there.resize(std::min(there.size(), kMostVersionsNamed));
  return absl::NotFoundError(absl::StrCat("model ", name, " has no ", asked,
                                          there.empty() ? "" : ", but versions ",
                                          absl::StrJoin(there, ", "), more ? ", …" : ""));
}

absl::Status NoAlias(SqliteConnection& sqlite, int64_t model, const std::string& name,
                     absl::string_view alias) {
  std::vector<std::string> there = SelectTexts(
      sqlite, "SELECT alias FROM aliases WHERE model = ? ORDER BY alias LIMIT 20", model);
  there.emplace_back(kLatestModel);
  return absl::NotFoundError(absl::StrCat("model ", name, " has no label \"", alias.substr(0, 80),
                                          "\", but ", absl::StrJoin(there, ", ")));
}

absl::StatusOr<VersionRow> FindVersion(SqliteConnection& sqlite, const std::string& name,
                                       const std::string& version) {
  TUTTI_ASSIGN_OR_RETURN(const int64_t model, FindModel(sqlite, name));
  absl::string_view alias = version;
  if (version.empty() || version == absl::StrCat("@", kLatestModel)) {
    if (auto latest = LatestVersion(sqlite, model)) return *std::move(latest);
    return NoVersion(sqlite, model, name, "version that is not archived");
  }
  if (absl::ConsumePrefix(&alias, "@")) {
    if (auto found = VersionOfAlias(sqlite, model, std::string(alias))) return *std::move(found);
    return NoAlias(sqlite, model, name, alias);
  }
  if (auto found = VersionByName(sqlite, model, version)) return *std::move(found);
  return NoVersion(sqlite, model, name, absl::StrCat("version ", version.substr(0, 80)));
}

int64_t InsertModelName(SqliteConnection& sqlite, const std::string& name, absl::Time now) {
  const CachedStatement insert(
      sqlite, "INSERT INTO models (name, created_us, changed_us) VALUES (?1, ?2, ?2)");
  insert->bind(1, name);
  insert->bind(2, absl::ToUnixMicros(now));
  insert->exec();
  return sqlite.getLastInsertRowid();
}

// Returns the version's name, and has later ones get greater numbers.
std::string TakeVersion(SqliteConnection& sqlite, int64_t model, const std::string& asked) {
  int64_t number = 0;
  if (asked.empty()) {
    const CachedStatement row(sqlite, "SELECT next_version FROM models WHERE id = ?");
    row->bind(1, model);
    row->executeStep();
    number = row->getColumn(0).getInt64();
  } else if (!absl::SimpleAtoi(asked, &number) || number > kMostNumbered) {
    number = 0;
  }
  const CachedStatement update(
      sqlite, "UPDATE models SET next_version = max(next_version, ?2 + 1) WHERE id = ?1");
  update->bind(1, model);
  update->bind(2, number);
  update->exec();
  return asked.empty() ? absl::StrCat(number) : asked;
}

void PutModelContent(SqliteConnection& sqlite, const ModelContent& content,
                     const std::string& digest) {
  uint64_t bytes = 0;
  for (const ModelFile& file : content.files) bytes += file.bytes;
  const CachedStatement put(sqlite, "INSERT OR IGNORE INTO contents VALUES (?, ?, ?, ?, ?)");
  put->bind(1, digest);
  put->bind(2, content.is_file ? content.files.front().path : "");
  put->bind(3, static_cast<int64_t>(content.files.size()));
  put->bind(4, static_cast<int64_t>(bytes));
  put->bind(5, JsonText(content.files));
  put->exec();
}

void InsertVersion(SqliteConnection& sqlite, int64_t model, const ModelCreation& creation,
                   const std::string& digest, absl::Time now) {
  const std::string version = TakeVersion(sqlite, model, creation.version);
  const CachedStatement insert(
      sqlite,
      "INSERT INTO versions (model, version, type, description, stage, tags, properties, content, "
      "lineage, nonce, created_us, changed_us) "
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?11)");
  insert->bind(1, model);
  insert->bind(2, version);
  insert->bind(3, creation.type);
  insert->bind(4, creation.description);
  insert->bind(5, creation.stage);
  insert->bind(6, JsonText(creation.tags));
  insert->bind(7, JsonText(creation.properties));
  insert->bind(8, digest);
  insert->bind(9, creation.lineage);
  insert->bind(10, creation.nonce);
  insert->bind(11, absl::ToUnixMicros(now));
  insert->exec();
}

void NoteChange(SqliteConnection& sqlite, int64_t model, absl::Time now) {
  const CachedStatement update(sqlite, "UPDATE models SET changed_us = ?2 WHERE id = ?1");
  update->bind(1, model);
  update->bind(2, absl::ToUnixMicros(now));
  update->exec();
}

void WriteChange(SqliteConnection& sqlite, int64_t version, const ModelChange& change,
                 absl::Time now) {
  const CachedStatement update(
      sqlite,
      "UPDATE versions SET description = coalesce(?2, description), stage = coalesce(?3, stage), "
      "tags = coalesce(?4, tags), properties = coalesce(?5, properties), "
      "archived = coalesce(?6, archived), changed_us = ?7 WHERE id = ?1");
  update->bind(1, version);
  if (change.description) update->bind(2, *change.description);
  if (change.stage) update->bind(3, *change.stage);
  if (change.tags) update->bind(4, JsonText(*change.tags));
  if (change.properties) update->bind(5, JsonText(*change.properties));
  if (change.archived) update->bind(6, *change.archived ? 1 : 0);
  update->bind(7, absl::ToUnixMicros(now));
  update->exec();
}

// Returns what a call with that nonce has made.
std::optional<VersionRow> VersionOfNonce(SqliteConnection& sqlite, const std::string& nonce) {
  const CachedStatement row(sqlite, TUTTI_VERSION_COLUMNS "WHERE v.nonce = ? AND v.nonce != ''");
  row->bind(1, nonce);
  return FirstVersion(sqlite, row);
}

// Returns what a creation says of a version that is there; what it leaves out stays.
ModelChange ChangeBy(const ModelCreation& creation) {
  ModelChange change;
  if (!creation.description.empty()) change.description = creation.description;
  if (!creation.stage.empty()) change.stage = creation.stage;
  if (!creation.tags.empty()) change.tags = creation.tags;
  if (!creation.properties.empty()) change.properties = creation.properties;
  return change;
}

absl::Status IsAnother(const ModelVersion& there, const ModelCreation& creation) {
  return absl::AlreadyExistsError(
      absl::StrCat("model ", creation.name, ":", creation.version, " is there with ",
                   there.type == creation.type ? "other files" : absl::StrCat("type ", there.type),
                   ", and a version does not change: take another, or leave the version out"));
}

RegisteredModel ModelIn(SqliteConnection& sqlite, const CachedStatement& row) {
  RegisteredModel model{.name = row->getColumn(1).getString(),
                        .description = row->getColumn(2).getString(),
                        .tags = TextsFrom(row->getColumn(3).getString()),
                        .archived = row->getColumn(4).getInt() != 0,
                        .created = absl::FromUnixMicros(row->getColumn(5).getInt64()),
                        .changed = absl::FromUnixMicros(row->getColumn(6).getInt64()),
                        .latest = row->getColumn(8).getString(),
                        .versions = row->getColumn(7).getInt64()};
  const CachedStatement alias(sqlite,
                              "SELECT a.alias, v.version FROM aliases a JOIN versions v "
                              "ON v.id = a.version WHERE a.model = ? ORDER BY a.alias");
  alias->bind(1, row->getColumn(0).getInt64());
  while (alias->executeStep()) {
    model.aliases[alias->getColumn(0).getString()] = alias->getColumn(1).getString();
  }
  return model;
}

// Deletes those of the contents that no version has, and returns them.
std::vector<DeletedContent> DeleteContents(SqliteConnection& sqlite,
                                           const std::vector<std::string>& digests) {
  std::vector<DeletedContent> deleted;
  for (const std::string& digest : digests) {
    ModelContent content = SelectContent(sqlite, digest);
    const CachedStatement remove(sqlite,
                                 "DELETE FROM contents WHERE digest = ?1 AND NOT EXISTS "
                                 "(SELECT 1 FROM versions WHERE content = ?1)");
    remove->bind(1, digest);
    if (remove->exec() > 0) deleted.push_back({digest, std::move(content)});
  }
  return deleted;
}

void DeleteById(SqliteConnection& sqlite, const char* sql, int64_t id) {
  const CachedStatement remove(sqlite, sql);
  remove->bind(1, id);
  remove->exec();
}

}  // namespace

absl::Status NoModel(const std::string& name) {
  return absl::NotFoundError(absl::StrCat("there is no model ", name.substr(0, 255)));
}

const store::Migrations& ModelMigrations() {
  static const auto* migrations = new store::Migrations{R"sql(
    CREATE TABLE models (
      id           INTEGER PRIMARY KEY AUTOINCREMENT,
      name         TEXT NOT NULL UNIQUE,
      description  TEXT NOT NULL DEFAULT '',
      tags         TEXT NOT NULL DEFAULT '{}',
      archived     INTEGER NOT NULL DEFAULT 0,
      next_version INTEGER NOT NULL DEFAULT 1,
      created_us   INTEGER NOT NULL,
      changed_us   INTEGER NOT NULL
    );
    CREATE TABLE contents (
      digest     TEXT NOT NULL PRIMARY KEY,
      file       TEXT NOT NULL,
      file_count INTEGER NOT NULL,
      bytes      INTEGER NOT NULL,
      files      TEXT NOT NULL
    );
    CREATE TABLE versions (
      id          INTEGER PRIMARY KEY AUTOINCREMENT,
      model       INTEGER NOT NULL REFERENCES models (id) ON DELETE CASCADE,
      version     TEXT NOT NULL,
      type        TEXT NOT NULL,
      description TEXT NOT NULL,
      stage       TEXT NOT NULL,
      tags        TEXT NOT NULL,
      properties  TEXT NOT NULL,
      content     TEXT NOT NULL REFERENCES contents (digest),
      lineage     TEXT NOT NULL,
      nonce       TEXT NOT NULL,
      archived    INTEGER NOT NULL DEFAULT 0,
      created_us  INTEGER NOT NULL,
      changed_us  INTEGER NOT NULL,
      UNIQUE (model, version)
    );
    CREATE INDEX versions_of_model ON versions (model, id);
    CREATE INDEX versions_of_content ON versions (content);
    CREATE UNIQUE INDEX versions_of_nonce ON versions (nonce) WHERE nonce != '';
    CREATE TABLE aliases (
      model   INTEGER NOT NULL REFERENCES models (id) ON DELETE CASCADE,
      alias   TEXT NOT NULL,
      version INTEGER NOT NULL REFERENCES versions (id) ON DELETE CASCADE,
      PRIMARY KEY (model, alias)
    ) WITHOUT ROWID;
    CREATE INDEX aliases_of_version ON aliases (version);
  )sql"};
  return *migrations;
}

absl::StatusOr<RegisteredVersion> PutVersion(SqliteConnection& sqlite,
                                             const ModelCreation& creation,
                                             const std::string& digest, absl::Time now) {
  if (auto made = VersionOfNonce(sqlite, creation.nonce)) {
    if (made->version.name == creation.name && made->version.digest == digest) {
      return RegisteredVersion{std::move(made->version), true};
    }
    return absl::InvalidArgumentError("this nonce has registered another model");
  }
  const auto known = ModelId(sqlite, creation.name);
  const int64_t model = known ? *known : InsertModelName(sqlite, creation.name, now);
  NoteChange(sqlite, model, now);
  if (!creation.version.empty()) {
    if (const auto there = VersionByName(sqlite, model, creation.version)) {
      if (there->version.digest != digest || there->version.type != creation.type) {
        return IsAnother(there->version, creation);
      }
      WriteChange(sqlite, there->id, ChangeBy(creation), now);
      return RegisteredVersion{VersionByName(sqlite, model, creation.version)->version, false};
    }
  }
  PutModelContent(sqlite, creation.content, digest);
  InsertVersion(sqlite, model, creation, digest, now);
  const CachedStatement row(sqlite, TUTTI_VERSION_COLUMNS "WHERE v.id = last_insert_rowid()");
  return RegisteredVersion{FirstVersion(sqlite, row)->version, true};
}

absl::StatusOr<ModelVersion> SelectVersion(SqliteConnection& sqlite, const std::string& name,
                                           const std::string& version) {
  TUTTI_ASSIGN_OR_RETURN(VersionRow found, FindVersion(sqlite, name, version));
  return std::move(found.version);
}

absl::StatusOr<VersionPage> SelectVersions(SqliteConnection& sqlite, const std::string& name,
                                           int64_t before, int limit) {
  TUTTI_ASSIGN_OR_RETURN(const int64_t model, FindModel(sqlite, name));
  VersionPage page;
  int64_t last = 0;
  {
    const CachedStatement row(
        sqlite, TUTTI_VERSION_COLUMNS "WHERE v.model = ? AND v.id < ? ORDER BY v.id DESC LIMIT ?");
    row->bind(1, model);
    row->bind(2, before > 0 ? before : std::numeric_limits<int64_t>::max());
    row->bind(3, limit + 1);
    while (row->executeStep()) {
      if (page.versions.size() == static_cast<size_t>(limit)) {
        page.before = last;
        break;
      }
      VersionRow found = VersionIn(row);
      AddAliases(sqlite, found);
      last = found.id;
      page.versions.push_back(std::move(found.version));
    }
  }
  return page;
}

ModelContent SelectContent(SqliteConnection& sqlite, const std::string& digest) {
  ModelContent content;
  const CachedStatement row(sqlite, "SELECT file, files FROM contents WHERE digest = ?");
  row->bind(1, digest);
  if (!row->executeStep()) return content;
  content.is_file = !row->getColumn(0).getString().empty();
  for (const json& file : json::parse(row->getColumn(1).getString(), nullptr, false)) {
    content.files.push_back(
        {file.at(0).get<std::string>(), file.at(1).get<std::string>(), file.at(2).get<uint64_t>()});
  }
  return content;
}

absl::StatusOr<RegisteredModel> SelectRegisteredModel(SqliteConnection& sqlite,
                                                      const std::string& name) {
  const CachedStatement row(sqlite, TUTTI_MODEL_SUMMARY "WHERE name = ?");
  row->bind(1, name);
  if (!row->executeStep()) return NoModel(name);
  return ModelIn(sqlite, row);
}

std::vector<RegisteredModel> SelectRegisteredModels(SqliteConnection& sqlite,
                                                    const std::string& after, int limit,
                                                    std::optional<bool> archived) {
  std::vector<RegisteredModel> models;
  const CachedStatement row(sqlite, TUTTI_MODEL_SUMMARY
                            "WHERE name > ?1 AND (?2 IS NULL OR archived = ?2) "
                            "ORDER BY name LIMIT ?3");
  row->bind(1, after);
  if (archived) row->bind(2, *archived ? 1 : 0);
  row->bind(3, limit);
  while (row->executeStep()) models.push_back(ModelIn(sqlite, row));
  return models;
}

absl::Status ChangeVersion(SqliteConnection& sqlite, const std::string& name,
                           const std::string& version, const ModelChange& change, absl::Time now) {
  TUTTI_ASSIGN_OR_RETURN(const VersionRow found, FindVersion(sqlite, name, version));
  WriteChange(sqlite, found.id, change, now);
  return absl::OkStatus();
}

absl::Status ChangeRegisteredModel(SqliteConnection& sqlite, const std::string& name,
                                   const ModelChange& change, absl::Time now) {
  const CachedStatement update(
      sqlite,
      "UPDATE models SET description = coalesce(?2, description), tags = coalesce(?3, tags), "
      "archived = coalesce(?4, archived), changed_us = ?5 WHERE name = ?1");
  update->bind(1, name);
  if (change.description) update->bind(2, *change.description);
  if (change.tags) update->bind(3, JsonText(*change.tags));
  if (change.archived) update->bind(4, *change.archived ? 1 : 0);
  update->bind(5, absl::ToUnixMicros(now));
  return update->exec() > 0 ? absl::OkStatus() : NoModel(name);
}

absl::Status PutModelAlias(SqliteConnection& sqlite, const std::string& name,
                           const std::string& alias, const std::string& version, absl::Time now) {
  TUTTI_ASSIGN_OR_RETURN(const int64_t model, FindModel(sqlite, name));
  TUTTI_ASSIGN_OR_RETURN(const VersionRow found, FindVersion(sqlite, name, version));
  const CachedStatement put(sqlite, "INSERT OR REPLACE INTO aliases VALUES (?, ?, ?)");
  put->bind(1, model);
  put->bind(2, alias);
  put->bind(3, found.id);
  put->exec();
  NoteChange(sqlite, model, now);
  return absl::OkStatus();
}

absl::Status RemoveModelAlias(SqliteConnection& sqlite, const std::string& name,
                              const std::string& alias, absl::Time now) {
  TUTTI_ASSIGN_OR_RETURN(const int64_t model, FindModel(sqlite, name));
  const CachedStatement remove(sqlite, "DELETE FROM aliases WHERE model = ? AND alias = ?");
  remove->bind(1, model);
  remove->bind(2, alias);
  if (remove->exec() == 0) return NoAlias(sqlite, model, name, alias);
  NoteChange(sqlite, model, now);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<DeletedContent>> DeleteVersions(SqliteConnection& sqlite,
                                                           const std::string& name,
                                                           const std::string& version) {
  if (version.empty()) {
    TUTTI_ASSIGN_OR_RETURN(const int64_t model, FindModel(sqlite, name));
    const std::vector<std::string> digests =
        SelectTexts(sqlite, "SELECT DISTINCT content FROM versions WHERE model = ?", model);
    DeleteById(sqlite, "DELETE FROM models WHERE id = ?", model);
    return DeleteContents(sqlite, digests);
  }
  TUTTI_ASSIGN_OR_RETURN(const VersionRow found, FindVersion(sqlite, name, version));
  DeleteById(sqlite, "DELETE FROM versions WHERE id = ?", found.id);
  return DeleteContents(sqlite, {found.version.digest});
}

bool HasContent(SqliteConnection& sqlite, const std::string& digest) {
  const CachedStatement row(sqlite, "SELECT 1 FROM contents WHERE digest = ?");
  row->bind(1, digest);
  return row->executeStep();
}

ModelTotals CountVersions(SqliteConnection& sqlite) {
  const CachedStatement row(
      sqlite,
      "SELECT (SELECT count(*) FROM versions), coalesce((SELECT sum(bytes) FROM contents), 0)");
  row->executeStep();
  return {row->getColumn(0).getInt64(), static_cast<uint64_t>(row->getColumn(1).getInt64())};
}

}  // namespace tutti::service
