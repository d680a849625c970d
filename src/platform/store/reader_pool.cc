#include "platform/store/reader_pool.h"

#include <SQLiteCpp/Transaction.h>

#include <string>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tutti::store {

absl::Status ReaderPool::Read(ReadKind kind,
                              const std::function<absl::Status(SqliteConnection&)>& body) {
  TUTTI_ASSIGN_OR_RETURN(std::unique_ptr<SqliteConnection> connection, Take(kind));
  const absl::Cleanup give_back = [&] { GiveBack(kind, std::move(connection)); };
  if (on_read_) on_read_();
  return connection->Guard([&]() -> absl::Status {
    SQLite::Transaction one_moment(*connection);
    return body(*connection);
  });
}

bool ReaderPool::HasRoom(ReadKind kind) const {
  const auto [of_short, of_long, of_lock_holder] = in_use_;
  if (kind == ReadKind::kLockHolder) return of_lock_holder == 0;
  if (kind == ReadKind::kLong && of_long >= kMostLong) return false;
  return of_short + of_long < kMost;
}

absl::StatusOr<std::unique_ptr<SqliteConnection>> ReaderPool::Take(ReadKind kind) {
  {
    absl::MutexLock lock(&mutex_);
    const auto has_room = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return HasRoom(kind); };
    if (!mutex_.AwaitWithTimeout(absl::Condition(&has_room), busy_timeout_)) {
      return absl::UnavailableError(
          absl::StrCat(path_.string(), ": too much is being read at once; try again"));
    }
    ++InUse(kind);
    if (!idle_.empty()) {
      std::unique_ptr<SqliteConnection> connection = std::move(idle_.back());
      idle_.pop_back();
      return connection;
    }
  }
  try {
    return std::make_unique<SqliteConnection>(path_, SQLite::OPEN_READONLY, busy_timeout_);
  } catch (const SQLite::Exception& error) {
    GiveBack(kind, nullptr);
    return OpenError(path_, error);
  } catch (...) {
    GiveBack(kind, nullptr);
    return StatusOfUnforeseen();
  }
}

void ReaderPool::GiveBack(ReadKind kind, std::unique_ptr<SqliteConnection> connection) {
  absl::MutexLock lock(&mutex_);
  --InUse(kind);
  if (connection != nullptr) idle_.push_back(std::move(connection));
}

}  // namespace tutti::store
