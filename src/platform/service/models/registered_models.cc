#include "platform/service/models/registered_models.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/service/results/disk_room.h"
#include "platform/service/results/job_files.h"

namespace tutti::service {
namespace {

namespace fs = std::filesystem;
using store::SqliteConnection;

constexpr absl::Duration kBusyTimeout = absl::Seconds(10);

}  // namespace

absl::StatusOr<store::SharedDatabase*> RegisteredModels::Database(bool make) {
  absl::MutexLock lock(&database_mutex_);
  std::error_code ignored;
  if (database_ == nullptr && !make && !fs::exists(database_file_, ignored)) return nullptr;
  if (database_ == nullptr) {
    TUTTI_ASSIGN_OR_RETURN(database_, store::SharedDatabase::Open(database_file_, ModelMigrations(),
                                                                  {.busy_timeout = kBusyTimeout}));
  }
  return database_.get();
}

absl::Status RegisteredModels::Read(const Body& body, bool* is_there) {
  TUTTI_ASSIGN_OR_RETURN(store::SharedDatabase* const database, Database(/*make=*/false));
  if (is_there != nullptr) *is_there = database != nullptr;
  if (database == nullptr) return absl::OkStatus();
  return database->Read(store::ReadKind::kShort, body);
}

absl::Status RegisteredModels::Write(const Body& body) {
  TUTTI_ASSIGN_OR_RETURN(store::SharedDatabase* const database, Database(/*make=*/true));
  return database->writes().Write(body);
}

absl::StatusOr<RegisteredVersion> RegisteredModels::Register(const ModelCreation& creation) {
  TUTTI_RETURN_IF_ERROR(CheckModel(creation));
  const std::string digest = DigestOf(creation.content);
  TUTTI_RETURN_IF_ERROR(CheckRoom(database_file_.parent_path()));
  absl::MutexLock lock(&contents_mutex_);
  auto registered = PlaceAndPut(creation, digest);
  if (registered.ok()) return registered;
  // What no version has got is not kept.
  const auto named = IsNamed(digest);
  if (named.ok() && !*named) contents_.RemoveTree(digest).IgnoreError();
  return registered;
}

absl::StatusOr<RegisteredVersion> RegisteredModels::PlaceAndPut(const ModelCreation& creation,
                                                                const std::string& digest) {
  Step("files");
  TUTTI_RETURN_IF_ERROR(contents_.Place(creation.content, digest));
  Step("tree");
  absl::StatusOr<RegisteredVersion> registered;
  TUTTI_RETURN_IF_ERROR(Write([&](SqliteConnection& sqlite) {
    registered = PutVersion(sqlite, creation, digest, clock_->Now());
    return registered.status();
  }));
  Step("row");
  return registered;
}

absl::StatusOr<ModelVersion> RegisteredModels::Find(const std::string& name,
                                                    const std::string& version) {
  absl::StatusOr<ModelVersion> found = NoModel(name);
  TUTTI_RETURN_IF_ERROR(Read([&](SqliteConnection& sqlite) {
    found = SelectVersion(sqlite, name, version);
    return found.status();
  }));
  return found;
}

absl::StatusOr<VersionPage> RegisteredModels::ListVersions(const std::string& name, int64_t before,
                                                           int limit) {
  absl::StatusOr<VersionPage> page = NoModel(name);
  TUTTI_RETURN_IF_ERROR(Read([&](SqliteConnection& sqlite) {
    page = SelectVersions(sqlite, name, before, limit);
    return page.status();
  }));
  return page;
}

absl::StatusOr<ModelContent> RegisteredModels::ContentOf(const ModelVersion& version) {
  ModelContent content;
  TUTTI_RETURN_IF_ERROR(Read([&](SqliteConnection& sqlite) {
    content = SelectContent(sqlite, version.digest);
    return absl::OkStatus();
  }));
  return content;
}

absl::StatusOr<fs::path> RegisteredModels::FileOf(const ModelVersion& version,
                                                  const std::string& path) const {
  TUTTI_RETURN_IF_ERROR(CheckRelativePath(path));
  fs::path file = contents_.TreeOf(version.digest, path);
  std::error_code ignored;
  // Trees have folders and files alone, which the service has made.
  if (fs::is_regular_file(fs::symlink_status(file, ignored))) return file;
  return absl::NotFoundError(
      absl::StrCat("model ", version.name, ":", version.version, " has no file ", path));
}

absl::StatusOr<RegisteredModel> RegisteredModels::FindModel(const std::string& name) {
  absl::StatusOr<RegisteredModel> found = NoModel(name);
  TUTTI_RETURN_IF_ERROR(Read([&](SqliteConnection& sqlite) {
    found = SelectRegisteredModel(sqlite, name);
    return found.status();
  }));
  return found;
}

absl::StatusOr<std::vector<RegisteredModel>> RegisteredModels::List(const std::string& after,
                                                                    int limit,
                                                                    std::optional<bool> archived) {
  std::vector<RegisteredModel> models;
  TUTTI_RETURN_IF_ERROR(Read([&](SqliteConnection& sqlite) {
    models = SelectRegisteredModels(sqlite, after, limit, archived);
    return absl::OkStatus();
  }));
  return models;
}

absl::Status RegisteredModels::Change(const std::string& name, const std::string& version,
                                      const ModelChange& change) {
  TUTTI_RETURN_IF_ERROR(CheckModelChange(change));
  TUTTI_RETURN_IF_ERROR(FindModel(name).status());
  return Write([&](SqliteConnection& sqlite) {
    return version.empty() ? ChangeRegisteredModel(sqlite, name, change, clock_->Now())
                           : ChangeVersion(sqlite, name, version, change, clock_->Now());
  });
}

absl::Status RegisteredModels::SetAlias(const std::string& name, const std::string& alias,
                                        const std::string& version) {
  TUTTI_RETURN_IF_ERROR(CheckModelAlias(alias));
  TUTTI_RETURN_IF_ERROR(FindModel(name).status());
  return Write([&](SqliteConnection& sqlite) {
    return PutModelAlias(sqlite, name, alias, version, clock_->Now());
  });
}

absl::Status RegisteredModels::RemoveAlias(const std::string& name, const std::string& alias) {
  TUTTI_RETURN_IF_ERROR(FindModel(name).status());
  return Write([&](SqliteConnection& sqlite) {
    return RemoveModelAlias(sqlite, name, alias, clock_->Now());
  });
}

absl::StatusOr<std::vector<ModelVersion>> RegisteredModels::VersionsOf(const std::string& name,
                                                                       const std::string& version) {
  constexpr int kPage = 1000;
  std::vector<ModelVersion> versions;
  if (!version.empty()) {
    TUTTI_ASSIGN_OR_RETURN(ModelVersion one, Find(name, version));
    versions.push_back(std::move(one));
    return versions;
  }
  for (int64_t before = 0;;) {
    TUTTI_ASSIGN_OR_RETURN(VersionPage page, ListVersions(name, before, kPage));
    std::move(page.versions.begin(), page.versions.end(), std::back_inserter(versions));
    before = page.before;
    if (before == 0) return versions;
  }
}

absl::Status RegisteredModels::Delete(const std::string& name, const std::string& version,
                                      const std::function<bool(const std::string&)>& is_used) {
  absl::MutexLock lock(&contents_mutex_);
  TUTTI_ASSIGN_OR_RETURN(const std::vector<ModelVersion> versions, VersionsOf(name, version));
  absl::Time last_created = absl::InfinitePast();
  for (const ModelVersion& one : versions) {
    last_created = std::max(last_created, one.created);
    if (!is_used(one.digest)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("model ", name, ":", one.version,
                     " is an input of a job that has not ended: cancel that first"));
  }
  std::vector<DeletedContent> deleted;
  TUTTI_RETURN_IF_ERROR(Write([&](SqliteConnection& sqlite) -> absl::Status {
    TUTTI_ASSIGN_OR_RETURN(deleted, DeleteVersions(sqlite, name, version));
    return absl::OkStatus();
  }));
  Step("deleted");
  for (const DeletedContent& content : deleted) {
    TUTTI_RETURN_IF_ERROR(contents_.RemoveTree(content.digest));
    // A file that was asked for after the version was made is about to be another's.
    TUTTI_RETURN_IF_ERROR(contents_.RemoveUnused(content.content, last_created));
  }
  return absl::OkStatus();
}

absl::StatusOr<ModelTotals> RegisteredModels::Count() {
  ModelTotals totals;
  TUTTI_RETURN_IF_ERROR(Read([&](SqliteConnection& sqlite) {
    totals = CountVersions(sqlite);
    return absl::OkStatus();
  }));
  return totals;
}

absl::StatusOr<bool> RegisteredModels::IsNamed(const std::string& digest) {
  bool named = false;
  TUTTI_RETURN_IF_ERROR(Read([&](SqliteConnection& sqlite) {
    named = HasContent(sqlite, digest);
    return absl::OkStatus();
  }));
  return named;
}

absl::Status RegisteredModels::RemoveOld() {
  const absl::Time since = clock_->Now() - kOld;
  for (const std::string& digest : contents_.TreesUnusedSince(since)) {
    absl::MutexLock lock(&contents_mutex_);
    TUTTI_ASSIGN_OR_RETURN(const bool named, IsNamed(digest));
    if (!named) TUTTI_RETURN_IF_ERROR(contents_.RemoveTree(digest));
  }
  absl::MutexLock lock(&contents_mutex_);
  return contents_.RemoveFilesUnusedSince(since);
}

}  // namespace tutti::service
