// ReaderPool keeps connections that only read, so that no read waits for a commit, nor a short one
// for long ones. In WAL mode each reads what was committed before it began, whatever is written
// meanwhile. Only the store itself uses it. Thread-safe.
#pragma once

#include <array>
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

// Says what a read may wait for. kShort: for others of its kind, as it takes some milliseconds at
// most. kLong, which may take as long as there is history: for all others. kLockHolder, of whom
// many wait for: for another of its kind alone.
enum class ReadKind { kShort, kLong, kLockHolder };

class ReaderPool {
 public:
  // Reads a database that a Database must keep open for as long as this lives; others may have the
  // file open too. `on_read`, if there is one, is called in each read.
  ReaderPool(std::filesystem::path path, absl::Duration busy_timeout, std::function<void()> on_read)
      : path_(std::move(path)), busy_timeout_(busy_timeout), on_read_(std::move(on_read)) {}

  // Runs `body`, which only reads; all that it reads is of one moment. Unavailable if all
  // connections that it may have are in use for longer than the busy timeout.
  absl::Status Read(ReadKind kind, const std::function<absl::Status(SqliteConnection&)>& body);

 private:
  // At the same time: of all but the lock holder, who has one of his own, and of the long ones.
  static constexpr size_t kMost = 8, kMostLong = 6;

  // Takes one; whoever has taken one gives it back.
  absl::StatusOr<std::unique_ptr<SqliteConnection>> Take(ReadKind kind) ABSL_LOCKS_EXCLUDED(mutex_);
  void GiveBack(ReadKind kind, std::unique_ptr<SqliteConnection> connection)
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasRoom(ReadKind kind) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  size_t& InUse(ReadKind kind) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return in_use_[static_cast<size_t>(kind)];
  }

  const std::filesystem::path path_;
  const absl::Duration busy_timeout_;
  const std::function<void()> on_read_;
  absl::Mutex mutex_;
  std::vector<std::unique_ptr<SqliteConnection>> idle_ ABSL_GUARDED_BY(mutex_);
  std::array<size_t, 3> in_use_ ABSL_GUARDED_BY(mutex_) = {};  // by kind
};

}  // namespace tutti::store
