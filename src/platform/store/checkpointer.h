// Checkpointer moves pages from the log of a Database to its file, on a thread of its own, so that
// no write waits for the syncs that this takes. SQLite would do it within a commit, every thousand
// pages. Inside the room store only.
//
// A round has two parts. The pages that are in the log are moved while writes go on, which may
// hang as long as the disk does; meanwhile a transaction that reads keeps a write from beginning
// the log anew, as the first commit of a log waits for the disk. Then, if all pages have been
// moved, no write is let in while this thread begins the log anew: for one sync, right after the
// disk has answered others. A round that writes or a long read kept from that is followed by
// another once writes pause, or once as much again has come. Where they never pause long enough, a
// log of 64 MiB has them wait for what is left of it. Large work that nobody waits for calls
// AwaitShortLog between its writes, so that others do not come to that.
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
  // `database` is used under `database_mutex`, and outlives it.
  Checkpointer(std::filesystem::path path, absl::Duration busy_timeout, Database* database,
               absl::Mutex* database_mutex);
  // Waits for a round that is under way, for as long as the disk hangs.
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  // Waits, for so long at most, until the log is shorter than two rounds.
  void AwaitShortLog(absl::Duration patience) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // How many pages the log had when a move began, and how many of them are in the file since.
  struct Moved {
    int pages = 0;
    int moved = 0;
  };
  void Work();
  // Waits until there is enough to move, or a pause to finish the last round in; false at the end.
  bool AwaitPages() ABSL_LOCKS_EXCLUDED(mutex_);
  // Called within each commit.
  void Note(int pages) ABSL_LOCKS_EXCLUDED(mutex_);
  int pages() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Sets has_begun_anew_, unless writes kept it from that, or a read of the log's last pages: then
  // true.
  absl::StatusOr<bool> Round();
  // Moves what is there, beside writes. If nothing has come meanwhile, begins the log anew, but for
  // such a read, and returns true.
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
  // How often in a row a read has kept it from its end.
  int held_by_reads_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tutti::store
