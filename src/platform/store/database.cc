#include "platform/store/database.h"

#include <SQLiteCpp/Transaction.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"

namespace tutti::store {
namespace {

// The log's file is cut to this once it has begun anew; until then it grows to what it holds.
constexpr int kMostBytesOfLog = 16 << 20;
constexpr int kApplicationId = 0x74757474;  // "tutt", in the file's header

// An error of SQLite is one of the whole transaction; any other exception is of this body alone.
absl::Status RunOne(const std::function<absl::Status(SqliteConnection&)>& body,
                    SqliteConnection& sqlite) {
  try {
    return body(sqlite);
  } catch (const SQLite::Exception&) {
    throw;
  } catch (...) {
    return StatusOfUnforeseen();
  }
}

int Pragma(SQLite::Database& sqlite, const char* name) {
  return sqlite.execAndGet(absl::StrCat("PRAGMA ", name)).getInt();
}

}  // namespace

Database::Database(const std::filesystem::path& path, DatabaseOptions options)
    : path_(path),
      options_(std::move(options)),
      sqlite_(path, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE, options_.busy_timeout) {}

absl::StatusOr<std::unique_ptr<Database>> Database::Open(const std::filesystem::path& path,
                                                         const Migrations& migrations,
                                                         DatabaseOptions options) {
  auto database = Open(path, migrations, options, LogIndex::kInFile);
  while (absl::IsResourceExhausted(database.status()) && options.on_full && options.on_full()) {
    database = Open(path, migrations, options, LogIndex::kInFile);
  }
  if (!absl::IsResourceExhausted(database.status())) return database;
  return Open(path, migrations, std::move(options), LogIndex::kInMemory);
}

absl::StatusOr<std::unique_ptr<Database>> Database::Open(const std::filesystem::path& path,
                                                         const Migrations& migrations,
                                                         DatabaseOptions options, LogIndex index) {
  // The last connection that is closed in order leaves no log.
  std::error_code error;
  const bool was_left = std::filesystem::exists(path.string() + "-wal", error);
  std::unique_ptr<Database> database;
  try {
    database.reset(new Database(path, std::move(options)));
  } catch (const SQLite::Exception& thrown) {
    return OpenError(path, thrown);
  }
  TUTTI_RETURN_IF_ERROR(database->Begin(index));
  // Whose file it is comes first: another program's is left as it was found.
  TUTTI_RETURN_IF_ERROR(database->CheckOwner());
  TUTTI_RETURN_IF_ERROR(database->Configure());
  if (was_left) TUTTI_RETURN_IF_ERROR(database->CheckContent());
  TUTTI_RETURN_IF_ERROR(database->Migrate(migrations));
  TUTTI_RETURN_IF_ERROR(database->OpenLog());
  database->has_lost_pages_ = was_left && index == LogIndex::kInFile;
  return database;
}

// Before the first read, which makes the index.
absl::Status Database::Begin(LogIndex index) {
  if (index == LogIndex::kInFile) return absl::OkStatus();
  keeps_others_out_ = true;
  return Read([&](SqliteConnection& sqlite) {
    sqlite.exec("PRAGMA locking_mode = EXCLUSIVE");
    return absl::OkStatus();
  });
}

absl::Status Database::CheckOwner() {
  return Read([&](SqliteConnection& sqlite) -> absl::Status {
    const int owner = Pragma(sqlite, "application_id");
    const int tables = sqlite.execAndGet("SELECT count(*) FROM sqlite_schema").getInt();
    if (owner == kApplicationId || (owner == 0 && tables == 0)) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        path_.string(), ": is a database of another program; choose another place for tutti's"));
  });
}

absl::Status Database::Configure() {
  return Read([&](SqliteConnection& sqlite) -> absl::Status {
    const std::string mode = sqlite.execAndGet("PRAGMA journal_mode = WAL").getString();
    if (mode != "wal") {
      return absl::FailedPreconditionError(
          absl::StrCat(path_.string(), ": its file system does not allow SQLite's WAL mode (it is ",
                       mode, "); put it on a local disk"));
    }
    sqlite.exec("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON");
    sqlite.exec(absl::StrCat("PRAGMA journal_size_limit = ", kMostBytesOfLog));
    return absl::OkStatus();
  });
}

// Reads the whole file.
absl::Status Database::CheckContent() {
  return Read([&](SqliteConnection& sqlite) -> absl::Status {
    const std::string verdict = sqlite.execAndGet("PRAGMA quick_check(1)").getString();
    if (verdict == "ok") return absl::OkStatus();
    return absl::DataLossError(absl::StrCat(path_.string(), ": is damaged (", verdict,
                                            "); restore it from a backup or move it away"));
  });
}

absl::Status Database::Migrate(const Migrations& migrations) {
  const int newest = static_cast<int>(migrations.size());
  int layout = 0;
  TUTTI_RETURN_IF_ERROR(Read([&](SqliteConnection& sqlite) {
    layout = Pragma(sqlite, "user_version");
    return absl::OkStatus();
  }));
  if (layout > newest) {
    return absl::FailedPreconditionError(
        absl::StrCat(path_.string(), ": was written by a newer tutti (layout ", layout,
                     ", this one knows up to ", newest,
                     "); install that version, or choose another place for the data"));
  }
  while (layout < newest) {
    TUTTI_RETURN_IF_ERROR(Write([&](SqliteConnection& sqlite) {
      layout = Pragma(sqlite, "user_version");  // another process may have been faster
      if (layout < newest) {
        sqlite.exec(migrations[layout++]);
        sqlite.exec(absl::StrCat("PRAGMA user_version = ", layout));
        sqlite.exec(absl::StrCat("PRAGMA application_id = ", kApplicationId));
      }
      return absl::OkStatus();
    }));
  }
  return absl::OkStatus();
}

absl::Status Database::OpenLog() {
  TUTTI_ASSIGN_OR_RETURN(log_, base::Open(path_.string() + "-wal", O_RDONLY));
  return absl::OkStatus();
}

// What has left the log for the database file by a checkpoint was synced by that.
absl::Status Database::SyncLog() const {
  if (options_.on_sync) TUTTI_RETURN_IF_ERROR(options_.on_sync());
  if (::fdatasync(log_.get()) == 0) return absl::OkStatus();
  return base::ErrnoStatus(absl::StrCat("sync ", path_.string(), "-wal"));
}

absl::Status Database::Sync() {
  absl::Status synced = TryToSync();
  while (absl::IsResourceExhausted(synced) && options_.on_full && options_.on_full()) {
    synced = TryToSync();
  }
  return synced;
}

absl::Status Database::TryToSync() {
  absl::Status synced = SyncLog();
  if (synced.ok() && has_lost_pages_) synced = BeginLogAnew();
  has_lost_pages_ = !synced.ok();
  return synced;
}

// Uses a connection of its own: this object's may be at work for another thread.
absl::Status Database::BeginLogAnew() {
  if (keeps_others_out_) {
    return absl::UnavailableError(absl::StrCat(
        path_.string(),
        ": its log may have been lost; start the service anew once the disk has room"));
  }
  absl::MutexLock lock(&checkpoint_mutex_);
  try {
    SqliteConnection sqlite(path_, SQLite::OPEN_READWRITE, options_.busy_timeout);
    return sqlite.Guard([&]() -> absl::Status {
      sqlite.exec("PRAGMA synchronous = FULL");
      const bool busy = sqlite.execAndGet("PRAGMA wal_checkpoint(RESTART)").getInt() != 0;
      return busy ? absl::UnavailableError(absl::StrCat(path_.string(), ": its log is in use"))
                  : absl::OkStatus();
    });
  } catch (const SQLite::Exception& thrown) {
    return OpenError(path_, thrown);
  }
}

void Database::NoteLog(std::function<void(int)> note) {
  note_log_ = std::move(note);
  const auto hook = [](void* self, sqlite3*, const char*, int pages) {
    static_cast<Database*>(self)->note_log_(pages);
    return SQLITE_OK;
  };
  sqlite3_wal_hook(sqlite_.getHandle(), hook, this);  // in the place of SQLite's own checkpoints
}

absl::Status Database::BeginLog() {
  const auto one_page = [](SqliteConnection& sqlite) {
    sqlite.exec(absl::StrCat("PRAGMA user_version = ", Pragma(sqlite, "user_version")));
    return absl::OkStatus();
  };
  return TryToWrite(one_page, Durability::kCrash);
}

absl::Status Database::Write(const std::function<absl::Status(SqliteConnection&)>& body,
                             Durability durability) {
  absl::Status written = TryToWrite(body, durability);
  while (absl::IsResourceExhausted(written) && options_.on_full && options_.on_full()) {
    written = TryToWrite(body, durability);
  }
  return written;
}

absl::Status Database::TryToWrite(const std::function<absl::Status(SqliteConnection&)>& body,
                                  Durability durability) {
  return sqlite_.Guard([&]() -> absl::Status {
    const bool syncs = durability == Durability::kPowerLoss ||
                       (keeps_others_out_ && durability == Durability::kDeferred);
    if (syncs != syncs_commits_) {  // in WAL mode NORMAL is FULL without the sync of each commit
      sqlite_.exec(syncs ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
      syncs_commits_ = syncs;
    }
    // Takes the write lock at once: a read that becomes a write can fail with no way to wait.
    SQLite::Transaction transaction(sqlite_, SQLite::TransactionBehavior::IMMEDIATE);
    TUTTI_RETURN_IF_ERROR(body(sqlite_));  // undone when `transaction` goes
    if (options_.on_commit) options_.on_commit(++commit_calls_);
    transaction.commit();
    if (options_.on_commit) options_.on_commit(++commit_calls_);
    return absl::OkStatus();
  });
}

absl::Status Database::WriteTogether(
    const std::vector<const std::function<absl::Status(SqliteConnection&)>*>& bodies,
    std::vector<absl::Status>& statuses, Durability durability) {
  const auto all = [&](SqliteConnection& sqlite) {
    statuses.clear();
    for (const auto* body : bodies) {
      sqlite.exec("SAVEPOINT one");
      statuses.push_back(RunOne(*body, sqlite));
      if (!statuses.back().ok()) sqlite.exec("ROLLBACK TO one");
      sqlite.exec("RELEASE one");
    }
    return absl::OkStatus();
  };
  return Write(all, durability);
}

absl::Status Database::Read(const std::function<absl::Status(SqliteConnection&)>& body) {
  return sqlite_.Guard([&] { return body(sqlite_); });
}

}  // namespace tutti::store
