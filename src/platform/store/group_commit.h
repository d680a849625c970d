// GroupCommit lets writes that several threads want at the same time share one transaction, and
// with it one sync of the disk. Whoever comes first while none is under way does those that have
// gathered; what comes meanwhile goes with the next. A write that fails is undone alone; if the
// transaction itself fails each write is tried by itself, so an error is always that of one's own
// write. Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "base/metrics/histogram.h"
#include "platform/store/database.h"
#include "platform/store/durable_mark.h"
#include "platform/store/writes.h"

namespace tutti::store {

class GroupCommit {
 public:
  // May be run twice: what it writes elsewhere it writes anew.
  using Body = std::function<absl::Status(SqliteConnection&)>;

  // `database` is used under `database_mutex` only. All writes are counted by `mark`.
  GroupCommit(Database* database, absl::Mutex* database_mutex, DurableMark* mark)
      : database_(database), database_mutex_(database_mutex), mark_(mark) {}

  // Returns once `body` is written as `durability` asks, or undone. One of a group that asks for
  // the disk has it for all.
  absl::Status Write(const Body& body, Durability durability = Durability::kPowerLoss);
  // Does the same of one that inserts events, the last of whose sequences is in `last_event` once
  // `body` has run. `number`, if there is one, gets that of the write.
  absl::Status Write(const Body& body, Durability durability, const int64_t& last_event,
                     int64_t* number = nullptr);
  // Adds what this has done to `counts`.
  void Count(WriteCounts& counts) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Request {
    const Body* body;
    Durability durability;
    const int64_t* last_event;
    absl::Status status;
    bool done = false;
  };
  absl::Status WriteInTurn(const Body& body, Durability durability, const int64_t& last_event);
  void Commit(const std::vector<Request*>& batch);
  void NoteEnd(const std::vector<Request*>& batch);

  Database* const database_;
  absl::Mutex* const database_mutex_;
  DurableMark* const mark_;
  std::atomic<int64_t> transactions_ = 0;
  mutable absl::Mutex mutex_;
  int64_t failed_ ABSL_GUARDED_BY(mutex_) = 0;
  base::Histogram times_ ABSL_GUARDED_BY(mutex_){kWriteBounds};
  bool at_work_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Request*> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tutti::store
