// RegisteredModels is the service's model registry: names with versions, which keep their files
// (model_contents.h) and what is said of them (models.db, a database of its own, made at the first
// use). Versions do not change; what is said of them may.
//
// Invariant: what was answered OK is on the disk, row and files. The files come first and the row
// last; a row goes first and its files last. So a crash at any step leaves a version whole or not
// at all, and at most files that no row names, which RemoveOld removes once they are a day old.
// Nothing removes a version but Delete.
//
// Thread-safe. Errors: NotFound, AlreadyExists, InvalidArgument, FailedPrecondition (files have not
// been sent); ResourceExhausted if the disk is full, and nothing was kept.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/threads/janitor.h"
#include "platform/service/models/model_contents.h"
#include "platform/service/models/registered_model.h"
#include "platform/service/models/registered_model_rows.h"
#include "platform/store/shared_database.h"

namespace tutti::service {

class RegisteredModels {
 public:
  static constexpr absl::Duration kOld = absl::Hours(24);

  // Uses the service's folder; makes nothing yet. `clock` outlives it. `on_step`, for tests, is
  // told of each step after which a process may be killed.
  RegisteredModels(const std::filesystem::path& home, const base::Clock* clock,
                   std::function<void(const char* step)> on_step = {})
      : database_file_(home / "models.db"),
        contents_(home),
        clock_(clock),
        on_step_(std::move(on_step)) {}

  // Where its files arrive.
  const ModelContents& contents() const { return contents_; }

  // Registers a version whose files are here. One that is there with the same type and files is
  // answered as it is, with what is newly said of it; AlreadyExists if it has others.
  absl::StatusOr<RegisteredVersion> Register(const ModelCreation& creation);
  // Finds one: by its version, "@ALIAS", or "" and "@latest".
  absl::StatusOr<ModelVersion> Find(const std::string& name, const std::string& version);
  absl::StatusOr<VersionPage> ListVersions(const std::string& name, int64_t before, int limit);
  absl::StatusOr<ModelContent> ContentOf(const ModelVersion& version);
  // Returns where it lies: a folder, or of a model that is one file, that.
  std::filesystem::path PathOf(const ModelVersion& version) const {
    return contents_.TreeOf(version.digest, version.file);
  }
  // Returns where a file of it lies. NotFound; InvalidArgument for a path that leads elsewhere.
  absl::StatusOr<std::filesystem::path> FileOf(const ModelVersion& version,
                                               const std::string& path) const;

  absl::StatusOr<RegisteredModel> FindModel(const std::string& name);
  // Returns up to `limit` models by name, those behind `after`; which of them `archived` says.
  absl::StatusOr<std::vector<RegisteredModel>> List(const std::string& after, int limit,
                                                    std::optional<bool> archived);
  // Change what is said of a version, or with "" of the name.
  absl::Status Change(const std::string& name, const std::string& version,
                      const ModelChange& change);
  absl::Status SetAlias(const std::string& name, const std::string& alias,
                        const std::string& version);
  absl::Status RemoveAlias(const std::string& name, const std::string& alias);

  // Deletes a version, or with "" the name with all versions. `is_used` says whether a job needs
  // the content of that digest: then FailedPrecondition.
  absl::Status Delete(const std::string& name, const std::string& version,
                      const std::function<bool(const std::string& digest)>& is_used);

  absl::StatusOr<ModelTotals> Count();
  // Removes what no version has, and what nobody has touched for a day.
  absl::Status RemoveOld();
  // Has removed what an earlier process was receiving. Reads the folder.
  void RemoveEarlier() { contents_.RemoveEarlier(janitor_); }

 private:
  using Body = std::function<absl::Status(store::SqliteConnection&)>;

  // Opens the database; `make`: it is made if it is not there, else null is returned.
  absl::StatusOr<store::SharedDatabase*> Database(bool make) ABSL_LOCKS_EXCLUDED(database_mutex_);
  // Reads nothing of one that is not there: OK, and `body` has not run.
  absl::Status Read(const Body& body, bool* is_there = nullptr);
  absl::Status Write(const Body& body);
  absl::StatusOr<RegisteredVersion> PlaceAndPut(const ModelCreation& creation,
                                                const std::string& digest)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(contents_mutex_);
  // Returns the versions that are to be deleted.
  absl::StatusOr<std::vector<ModelVersion>> VersionsOf(const std::string& name,
                                                       const std::string& version);
  absl::StatusOr<bool> IsNamed(const std::string& digest);
  void Step(const char* step) const {
    if (on_step_) on_step_(step);
  }

  const std::filesystem::path database_file_;
  const ModelContents contents_;
  const base::Clock* const clock_;
  const std::function<void(const char*)> on_step_;
  // Held from before a content's files are looked for until the row that names it is there, and
  // from before a row goes until its files are gone.
  absl::Mutex contents_mutex_;
  absl::Mutex database_mutex_;
  std::unique_ptr<store::SharedDatabase> database_ ABSL_GUARDED_BY(database_mutex_);
  base::Janitor janitor_;
};

}  // namespace tutti::service
