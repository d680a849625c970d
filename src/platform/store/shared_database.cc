#include "platform/store/shared_database.h"

#include <fcntl.h>

#include <utility>

#include "base/deadline.h"
#include "base/file.h"
#include "base/status.h"

namespace tutti::store {

SharedDatabase::SharedDatabase(const std::filesystem::path& path, absl::Duration busy_timeout,
                               std::unique_ptr<Database> database, std::function<void()> on_read)
    : database_(std::move(database)),
      mark_([this] { return Sync(); }),
      writes_(database_.get(), &mutex_, &mark_),
      readers_(database_->keeps_others_out()
                   ? nullptr
                   : std::make_unique<ReaderPool>(path, busy_timeout, std::move(on_read))),
      checkpointer_(readers_ == nullptr ? nullptr
                                        : std::make_unique<Checkpointer>(
                                              path, busy_timeout, database_.get(), &mutex_)) {
  // An earlier process may have been killed before it had synced what it wrote.
  mark_.BeginWrite(Durability::kDeferred);
  mark_.EndWrites();
}

absl::StatusOr<std::unique_ptr<SharedDatabase>> SharedDatabase::Open(
    const std::filesystem::path& path, const Migrations& migrations, DatabaseOptions options,
    std::function<void()> on_read) {
  // SQLite would make it readable for all. Its -wal and -shm files get the same mode. A file that
  // is there is not opened: to close it would drop this process's locks on it.
  const absl::Status created = base::Open(path, O_RDWR | O_CREAT | O_EXCL, 0600).status();
  if (!created.ok() && !absl::IsAlreadyExists(created)) return created;
  const absl::Duration busy_timeout = options.busy_timeout;
  TUTTI_ASSIGN_OR_RETURN(std::unique_ptr<Database> database,
                         Database::Open(path, migrations, std::move(options)));
  const bool may_lack_pages = database->has_lost_pages();
  std::unique_ptr<SharedDatabase> shared(
      new SharedDatabase(path, busy_timeout, std::move(database), std::move(on_read)));
  if (may_lack_pages) shared->mark().AwaitAll().IgnoreError();  // else what needs it tries again
  return shared;
}

absl::Status SharedDatabase::Read(ReadKind kind,
                                  const std::function<absl::Status(SqliteConnection&)>& body) {
  if (readers_ != nullptr) return readers_->Read(kind, body);
  absl::MutexLock lock(&mutex_);
  return database_->Read(body);
}

// To sync needs no lock.
absl::Status SharedDatabase::Sync() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  const absl::Duration began = base::SteadyNow();
  absl::Status status = database_->Sync();
  absl::MutexLock lock(&syncs_mutex_);
  syncs_.Add(base::SteadyNow() - began);
  return status;
}

WriteCounts SharedDatabase::CountWrites() const {
  WriteCounts counts;
  writes_.Count(counts);
  absl::MutexLock lock(&syncs_mutex_);
  counts.syncs = syncs_;
  return counts;
}

void SharedDatabase::AwaitShortLog(absl::Duration patience) {
  if (checkpointer_ != nullptr) checkpointer_->AwaitShortLog(patience);
}

}  // namespace tutti::store
