// SharedDatabase is a Database that many threads use at once: writes that come together share a
// transaction and a sync (group_commit.h), reads have connections of their own (reader_pool.h), and
// a thread moves pages from the log to the file (checkpointer.h). The stores of jobs, of tracking
// and of registered models are made of it. Thread-safe.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/metrics/histogram.h"
#include "platform/store/checkpointer.h"
#include "platform/store/database.h"
#include "platform/store/durable_mark.h"
#include "platform/store/group_commit.h"
#include "platform/store/reader_pool.h"
#include "platform/store/writes.h"

namespace tutti::store {

class SharedDatabase {
 public:
  // Opens it, or makes it, readable by its owner alone. What an earlier process wrote and did not
  // sync is synced by the first DurableMark::AwaitAll at the latest. `on_read`: see ReaderPool.
  static absl::StatusOr<std::unique_ptr<SharedDatabase>> Open(const std::filesystem::path& path,
                                                              const Migrations& migrations,
                                                              DatabaseOptions options,
                                                              std::function<void()> on_read = {});

  // Runs `body`, which only reads; no commit is waited for where others may read the file.
  absl::Status Read(ReadKind kind, const std::function<absl::Status(SqliteConnection&)>& body);
  GroupCommit& writes() { return writes_; }
  DurableMark& mark() { return mark_; }
  // See Checkpointer: waits no longer than that.
  void AwaitShortLog(absl::Duration patience);
  WriteCounts CountWrites() const;

 private:
  SharedDatabase(const std::filesystem::path& path, absl::Duration busy_timeout,
                 std::unique_ptr<Database> database, std::function<void()> on_read);
  absl::Status Sync();

  absl::Mutex mutex_;
  mutable absl::Mutex syncs_mutex_;
  base::Histogram syncs_ ABSL_GUARDED_BY(syncs_mutex_){kWriteBounds};
  const std::unique_ptr<Database> database_ ABSL_PT_GUARDED_BY(mutex_);
  DurableMark mark_;
  GroupCommit writes_;
  // These go first: the last to close empties the log.
  const std::unique_ptr<ReaderPool> readers_;
  const std::unique_ptr<Checkpointer> checkpointer_;
};

}  // namespace tutti::store
