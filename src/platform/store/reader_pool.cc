#include "platform/store/reader_pool.h"

#include <SQLiteCpp/Transaction.h>

#include <string>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tutti::store {

absl::Status ReaderPool::Read(const std::function<absl::Status(SqliteConnection&)>& body) {
  TUTTI_ASSIGN_OR_RETURN(std::unique_ptr<SqliteConnection> connection, Take());
  const absl::Cleanup give_back = [&] { GiveBack(std::move(connection)); };
  return connection->Guard([&]() -> absl::Status {
    SQLite::Transaction one_moment(*connection);
    return body(*connection);
  });
}

absl::StatusOr<std::unique_ptr<SqliteConnection>> ReaderPool::Take() {
  {
    absl::MutexLock lock(&mutex_);
    const auto is_free = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return in_use_ < kMost; };
    if (!mutex_.AwaitWithTimeout(absl::Condition(&is_free), busy_timeout_)) {
      return absl::UnavailableError(
          absl::StrCat(path_.string(), ": too much is being read at once; try again"));
    }
    ++in_use_;
    if (!idle_.empty()) {
      std::unique_ptr<SqliteConnection> connection = std::move(idle_.back());
      idle_.pop_back();
      return connection;
    }
  }
  try {
    return std::make_unique<SqliteConnection>(path_, SQLite::OPEN_READONLY, busy_timeout_);
  } catch (const SQLite::Exception& error) {
    GiveBack(nullptr);
    return OpenError(path_, error);
  } catch (...) {
    GiveBack(nullptr);
    return StatusOfUnforeseen();
  }
}

void ReaderPool::GiveBack(std::unique_ptr<SqliteConnection> connection) {
  absl::MutexLock lock(&mutex_);
  --in_use_;
  if (connection != nullptr) idle_.push_back(std::move(connection));
}

}  // namespace tutti::store
