// ReaderPool keeps connections that only read, so that no read waits for a commit, nor a short one
// for a long one. In WAL mode each reads what was committed before it began, whatever is written
// meanwhile. Inside the room store only. Thread-safe.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "platform/store/sqlite_connection.h"

namespace tutti::store {

class ReaderPool {
 public:
  // Reads a database that a Database must keep open for as long as this lives; others may have the
  // file open too.
  ReaderPool(std::filesystem::path path, absl::Duration busy_timeout)
      : path_(std::move(path)), busy_timeout_(busy_timeout) {}

  // Runs `body`, which only reads; all that it reads is of one moment. Unavailable if all
  // connections are in use for longer than the busy timeout.
  absl::Status Read(const std::function<absl::Status(SqliteConnection&)>& body);

 private:
  static constexpr size_t kMost = 8;  // at the same time

  // Takes one; whoever has taken one gives it back.
  absl::StatusOr<std::unique_ptr<SqliteConnection>> Take() ABSL_LOCKS_EXCLUDED(mutex_);
  void GiveBack(std::unique_ptr<SqliteConnection> connection) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::filesystem::path path_;
  const absl::Duration busy_timeout_;
  absl::Mutex mutex_;
  std::vector<std::unique_ptr<SqliteConnection>> idle_ ABSL_GUARDED_BY(mutex_);
  size_t in_use_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tutti::store
