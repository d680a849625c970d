// Checkpointer moves pages from the log of a Database to its file, on a thread of its own, so that
// no write waits for the syncs that this takes. SQLite would do it within a commit, every thousand
// pages. Only the store itself uses it.
//
// A round has two parts. First it moves the pages that are in the log while writes go on; this may
// hang as long as the disk does. Meanwhile a transaction that reads keeps a write from beginning
// the log anew, as the first commit of a log waits for the disk. Then, if all pages have been
// moved, this thread keeps writes out while it begins the log anew, which takes one sync, right
// after the disk has answered others. If writes or a long read prevent that, another round follows
// once writes pause, or once as many pages have come again. If they never pause long enough, writes
// wait at 64 MiB until the rest of the log has been moved. Large work that nobody waits for calls
// AwaitShortLog between its writes, so that other writes need not wait.
#pragma once

#include <filesystem>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "platform/store/database.h"

namespace tutti::store {

class Checkpointer {
 public:
  // Uses `database` under `database_mutex`; both outlive the object.
  Checkpointer(std::filesystem::path path, absl::Duration busy_timeout, Database* database,
               absl::Mutex* database_mutex);
  // Waits for a round that is under way, for as long as the disk hangs.
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  // Waits, for so long at most, until the log is shorter than two rounds.
  void AwaitShortLog(absl::Duration patience) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Moved is how many pages the log had when a move began, and how many of them are in the file
  // now.
  struct Moved {
    int pages = 0;
    int moved = 0;
  };
  void Work();
  // Waits until there is enough to move, or a pause to finish the last round in; returns false at
  // the end.
  bool AwaitPages() ABSL_LOCKS_EXCLUDED(mutex_);
  // Notes how many pages the log has; each commit calls it.
  void Note(int pages) ABSL_LOCKS_EXCLUDED(mutex_);
  int pages() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns whether it has moved all pages. Sets has_begun_anew_, too, unless a read of the log's
  // last pages prevents that.
  absl::StatusOr<bool> Round();
  // Moves what is there, beside writes. If nothing has come meanwhile, begins the log anew, unless
  // such a read prevents that, and returns true.
  absl::StatusOr<bool> TryRound();
  absl::Status FinishWithoutWrites();
  absl::StatusOr<Moved> Move();
  absl::Status Hold();
  absl::Status LetGo();

  const std::filesystem::path path_;
  const absl::Duration busy_timeout_;
  Database* const database_;
  absl::Mutex* const database_mutex_;
  std::unique_ptr<SqliteConnection> moves_, holds_;  // of the thread
  mutable absl::Mutex mutex_;
  int pages_ ABSL_GUARDED_BY(mutex_) = 0;                // of the log
  int looked_ ABSL_GUARDED_BY(mutex_) = 0;               // its pages at the end of the last round
  bool has_begun_anew_ ABSL_GUARDED_BY(mutex_) = false;  // the log, since the last round began
  bool is_unfinished_ ABSL_GUARDED_BY(mutex_) = false;   // the last round
  // Counts how often in a row a read has kept the round from its end.
  int held_by_reads_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tutti::store
