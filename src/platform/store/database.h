// Database is the store's connection that writes: it opens the file safely and migrates it to the
// present layout. Not thread-safe, but for Sync.
//
// Invariant: outside of Write no transaction is open, whatever failed or was thrown before. What a
// body throws is an error of that body: Internal, if it is not SQLite's.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/unique_fd.h"
#include "platform/store/sqlite_connection.h"
#include "platform/store/writes.h"

namespace tutti::store {

// Step n brings a database from layout n to layout n + 1.
using Migrations = std::vector<const char*>;

struct DatabaseOptions {
  absl::Duration busy_timeout;
  std::function<void(int64_t)> on_commit;  // may be empty; see StoreOptions
  std::function<absl::Status()> on_sync;   // the same
  std::function<bool()> on_full;           // the same
};

class Database {
 public:
  // Opens one that is there also on a full disk: Write is then ResourceExhausted until there is
  // room. Its whole content is checked if whoever had it last did not close it, which reads it
  // all; other damage is DataLoss once it is read.
  static absl::StatusOr<std::unique_ptr<Database>> Open(const std::filesystem::path& path,
                                                        const Migrations& migrations,
                                                        DatabaseOptions options);

  // Runs `body` in one write transaction: committed if it returns OK, else undone.
  absl::Status Write(const std::function<absl::Status(SqliteConnection&)>& body,
                     Durability durability = Durability::kPowerLoss);
  // Runs all in one transaction; those that do not return OK are undone, the others committed. On
  // an error of the database itself nothing is changed, and that is returned.
  absl::Status WriteTogether(
      const std::vector<const std::function<absl::Status(SqliteConnection&)>*>& bodies,
      std::vector<absl::Status>& statuses, Durability durability = Durability::kPowerLoss);
  // Syncs the disk: once it returns OK what was written before survives a loss of power. From one
  // thread at a time, also beside a call of another: only the disk is waited for. After one that
  // has failed the next writes the log's content into the file and begins the log anew: the system
  // tells once that it could not write a page, and may have dropped it.
  absl::Status Sync();
  // Returns whether the next Sync begins the log anew. So it is after Open of one whose log was
  // left: whoever had it last may have been killed after a sync that failed.
  bool has_lost_pages() const { return has_lost_pages_; }
  // Returns whether no other connection can read it, as there was no room for an index of its log.
  bool keeps_others_out() const { return keeps_others_out_; }
  // Has `note` told, at the end of each commit and by its thread, how many pages the log holds.
  // From here on no commit moves pages from the log to the file: checkpointer.h does.
  void NoteLog(std::function<void(int)> note);
  // Writes one page more, so that a log all of whose pages are in the file begins anew; the first
  // commit of a log waits for the disk, also one that is not synced.
  absl::Status BeginLog();
  // To be held while pages are moved from the log to the file.
  absl::Mutex& checkpoint_mutex() { return checkpoint_mutex_; }
  // Runs `body`, which only reads.
  absl::Status Read(const std::function<absl::Status(SqliteConnection&)>& body);

 private:
  // Where SQLite keeps the index of its log: in a file that other programs share, or in memory,
  // which takes no room of the disk and keeps others out.
  enum class LogIndex { kInFile, kInMemory };
  Database(const std::filesystem::path& path, DatabaseOptions options);
  static absl::StatusOr<std::unique_ptr<Database>> Open(const std::filesystem::path& path,
                                                        const Migrations& migrations,
                                                        DatabaseOptions options, LogIndex index);
  absl::Status Begin(LogIndex index);
  absl::Status TryToWrite(const std::function<absl::Status(SqliteConnection&)>& body,
                          Durability durability);
  absl::Status CheckOwner();
  absl::Status Configure();
  absl::Status CheckContent();
  absl::Status Migrate(const Migrations& migrations);
  absl::Status OpenLog();
  absl::Status SyncLog() const;
  absl::Status TryToSync();
  absl::Status BeginLogAnew();

  const std::filesystem::path path_;
  const DatabaseOptions options_;
  bool keeps_others_out_ = false;
  int64_t commit_calls_ = 0;
  bool syncs_commits_ = true;    // as SQLite is set
  bool has_lost_pages_ = false;  // of the log, by a failed sync; of who syncs
  absl::Mutex checkpoint_mutex_;
  std::function<void(int)> note_log_;
  SqliteConnection sqlite_;
  base::UniqueFd log_;  // SQLite's write-ahead log, which is there as long as its connection
};

}  // namespace tutti::store
