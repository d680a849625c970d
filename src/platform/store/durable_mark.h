// DurableMark knows up to which write the store survives a loss of power, and lets all that wait
// for theirs share one sync of the disk. Writes go on while the disk is waited for. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "platform/store/writes.h"

namespace tutti::store {

class DurableMark {
 public:
  // `sync` returns OK once all that was committed before its call survives a loss of power. It is
  // called by one thread at a time.
  explicit DurableMark(std::function<absl::Status()> sync) : sync_(std::move(sync)) {}

  // Returns the number of a write, ascending from 1. Called within the transaction of the write: no
  // reader sees what it wrote before last_deferred() counts it.
  int64_t BeginWrite(Durability durability);
  // Notes that all writes that have a number are committed or undone. `last_event` is the last
  // event of those that are committed, 0: there is none. That a commit has synced by itself is not
  // counted: the system may have told SQLite, and not `sync`, that it lost what lay before.
  void EndWrites(int64_t last_event = 0);
  // Returns the number of the last write of kDeferred; 0: there was none.
  int64_t last_deferred() const;
  // Returns whether the last sync has failed: what is written behind what it lost survives nothing.
  bool has_failed() const;
  // Returns whether it is known that this event and all before it survive a loss of power.
  bool HasEvent(int64_t event) const;
  // Returns once that write and all before it survive a loss of power. An error is that of the
  // sync, and the next call tries again.
  absl::Status Await(int64_t number);
  // Awaits the same of all writes that are committed.
  absl::Status AwaitAll();

 private:
  // How far the store has come.
  struct Position {
    int64_t number = 0;  // of a write
    int64_t event = 0;
  };
  // Waits until `number` is durable (false), or until it is this thread that is to sync (true).
  bool BeginSync(int64_t number, Position& synced);
  void EndSync(const Position& synced, bool ok);

  const std::function<absl::Status()> sync_;
  mutable absl::Mutex mutex_;
  int64_t begun_ ABSL_GUARDED_BY(mutex_) = 0;
  Position ended_ ABSL_GUARDED_BY(mutex_);    // up to which none is under way
  Position durable_ ABSL_GUARDED_BY(mutex_);  // at most `ended_`
  int64_t deferred_ ABSL_GUARDED_BY(mutex_) = 0;
  bool at_work_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_failed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tutti::store
