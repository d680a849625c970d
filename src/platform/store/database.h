// One connection to a tutti database: opened safely, migrated, with SQLite's errors turned into
// statuses that say what to do. Inside the room store only. Not thread-safe,
// but for Sync.
//
// Invariant: outside of Write no transaction is open, whatever failed before.
#pragma once

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Exception.h>
#include <SQLiteCpp/Statement.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/unique_fd.h"
#include "platform/store/survives.h"

namespace tutti::store {

// Step n brings a database from layout n to layout n + 1.
using Migrations = std::vector<const char*>;

struct DatabaseOptions {
  absl::Duration busy_timeout;
  std::function<void(int64_t)> on_commit;  // may be empty; see StoreOptions
  std::function<absl::Status()> on_sync;   // the same
};

class Database {
 public:
  static absl::StatusOr<std::unique_ptr<Database>> Open(const std::filesystem::path& path,
                                                        const Migrations& migrations,
                                                        DatabaseOptions options);

  // Runs `body` in one write transaction: committed if it returns OK, else undone.
  absl::Status Write(const std::function<absl::Status(SQLite::Database&)>& body,
                     Survives survives = Survives::kPowerLoss);
  // Runs all in one transaction; those that do not return OK are undone, the others committed. On
  // an error of the database itself nothing is changed, and that is returned.
  absl::Status WriteTogether(
      const std::vector<const std::function<absl::Status(SQLite::Database&)>*>& bodies,
      std::vector<absl::Status>& statuses, Survives survives = Survives::kPowerLoss);
  // Once it returns OK what was written before survives a loss of power. From any thread, also
  // beside a call of another: only the disk is waited for.
  absl::Status Sync() const;
  // Runs `body`, which only reads.
  absl::Status Read(const std::function<absl::Status(SQLite::Database&)>& body);

 private:
  Database(const std::filesystem::path& path, DatabaseOptions options);
  absl::Status CheckOwner();
  absl::Status Configure();
  absl::Status Migrate(const Migrations& migrations);
  absl::Status OpenLog();
  absl::Status StatusOf(const SQLite::Exception& error);

  const std::filesystem::path path_;
  const DatabaseOptions options_;
  int64_t commit_calls_ = 0;
  Survives set_to_ = Survives::kPowerLoss;  // as SQLite is set
  SQLite::Database sqlite_;
  base::UniqueFd log_;  // SQLite's write-ahead log, which is there as long as its connection
};

}  // namespace tutti::store
