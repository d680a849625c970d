// JobLogs keeps the output of a job's processes as plain files: rank-R.stdout, .stderr, .metrics,
// .mlflow and .mpirun, and `arrivals`, an index of fixed-size records (when which lines of which
// file came), so that a follower sees all ranks merged in the order of arrival and a position in it
// is one number.
//
//   Append: bytes -> file -> record in the index -> acknowledged
//
// Invariant: the index covers a prefix of each file, and a record covers whole lines, save for the
// last line of a closed log, for lines longer than kMaxLine and for lines that are drawn anew after
// a carriage return (progress bars), which come in pieces as they are printed, of whole characters.
// The file's size is the acknowledgement, so a repeated Append changes nothing. After a crash
// TryToOpen indexes the whole lines that had reached a file and not yet the index. No fsync until
// Close: the death of the process loses nothing; after a power failure the last seconds before it
// may be missing.
//
// A job may fill a part of the disk and no more: once its files have `limit` bytes the log is full.
// From then on everything is acknowledged, and of each file the last bytes (output_tail.h) come to
// its end when the log is closed, after a line that says how much is left out. `rank-kept.json`
// says how much each file had when the log became full, and in which attempt of the job.
//
// What a later attempt of the job prints goes behind what there is: `rank-begins.json` says where
// in each file it begins, and offsets of Append count from there.
//
// At most kMostOpen of the files are open at a time, those that were used last: a gang of a
// thousand ranks does not need two thousand descriptors.
//
// Thread-safe; one object for writing per folder. What reads or writes files may wait for a disk;
// opened, full and bytes never do.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/unique_fd.h"

namespace tutti::service {

// kMpirun: what mpirun, its daemon or srun says itself, by the first rank of its node. kMlflow:
// what the rank logs in its MLflow store, as lines of a metrics file. The numbers stand in files.
enum class LogStream : uint8_t { kStdout = 0, kStderr = 1, kMetrics = 2, kMpirun = 3, kMlflow = 4 };
absl::string_view Name(LogStream stream);
absl::StatusOr<LogStream> LogStreamFromName(absl::string_view name);

// Returns the files of that stream in a folder of JobLogs', by rank; none if there is no folder.
absl::StatusOr<std::map<int, std::filesystem::path>> RankFiles(
    const std::filesystem::path& directory, LogStream stream);

// A position between two lines: `record` whole records and `offset` bytes of the next one have been
// read.
struct LogPosition {
  uint64_t record = 0;
  uint64_t offset = 0;
  bool operator==(const LogPosition&) const = default;
};

struct LogLine {
  LogPosition next;  // the position after it
  absl::Time time;   // of arrival; in the order of the lines
  int rank = 0;
  LogStream stream = LogStream::kStdout;
  std::string text;
  bool partial = false;  // without a newline: the next piece of the file goes on with this line
};

// Lines that follow each other, and the position before the first of them.
struct LogPage {
  LogPosition begin;
  std::vector<LogLine> lines;
};

class JobLogs {
 public:
  static constexpr size_t kMaxLine = 64 << 10;
  static constexpr size_t kMostOpen = 64;  // files of one log, beside its index
  static constexpr uint64_t kNoLimit = ~uint64_t{0};

  // Makes an object for writing. Nothing is read or kept before TryToOpen succeeds, which may be
  // tried again. A folder that is not there is made with the first bytes: who submits a job need
  // not wait for it.
  static std::shared_ptr<JobLogs> OpenLater(const std::filesystem::path& directory,
                                            const base::Clock* clock, uint64_t limit = kNoLimit,
                                            int attempt = 1);
  absl::Status TryToOpen();
  bool opened() const { return opened_; }
  // Opens the logs of a job that has ended, to read them only. A folder that is not there is an
  // empty log.
  static absl::StatusOr<std::shared_ptr<JobLogs>> OpenToRead(
      const std::filesystem::path& directory);
  ~JobLogs();

  // Appends `bytes` of the stream from `offset` on. What is there already is skipped; if bytes
  // before `offset` are missing nothing is kept. Returns how many bytes are kept now: where to go
  // on. ResourceExhausted if the disk is full; a part may have been kept then. Unavailable if it
  // cannot be opened, FailedPrecondition after Close.
  absl::StatusOr<uint64_t> Append(int rank, LogStream stream, uint64_t offset,
                                  absl::string_view bytes);
  bool full() const { return full_; }
  uint64_t bytes() const { return total_; }  // that are kept, of all files; 0 before it is opened
  // Returns `now`, or if the clock has been set back a time just behind the last one that this
  // returned or a line has: what happens to the job stays in its order. Waits for nothing.
  absl::Time InOrder(absl::Time now);
  // Closes the logs: last lines without a newline are indexed, everything is on the disk. What
  // was not opened stays as it is.
  absl::Status Close();

  // Returns the lines after `position`, up to about `max_bytes` (at least one line if there is
  // one). None before it is opened.
  // InvalidArgument for a position that is none of this log.
  absl::StatusOr<std::vector<LogLine>> Read(LogPosition position, size_t max_bytes) const;
  // Returns the last lines before `position`, of all without one, oldest first: up to `max_lines`
  // and about `max_bytes`, at least one if there is one. It reads backwards, so that the length of
  // the log does not matter. InvalidArgument as Read.
  absl::StatusOr<LogPage> ReadBack(std::optional<LogPosition> position, size_t max_lines,
                                   size_t max_bytes) const;

 private:
  struct Record;
  struct File;
  JobLogs(std::filesystem::path directory, const base::Clock* clock, uint64_t limit, int attempt);
  absl::Status OpenOnce() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status OpenAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status BeginAttempt() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status OpenIndex(int flags) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status MakeFolder() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Recover() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status FindFiles() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status ReadIndex() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status RecoverFullness() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status BecomeFull() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t Room() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Keep(File& file, absl::string_view bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Finds the lines in the bytes that have come to the file's end.
  static void NoteLines(File& file, absl::string_view fresh);
  absl::Status AddTail(File& file) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<File*> FileOf(int rank, LogStream stream) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns its descriptor, which stays open as long as the caller has it.
  absl::StatusOr<std::shared_ptr<const base::UniqueFd>> Descriptor(File& file) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<uint64_t> EndToShow(File& file) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status IndexLines(File& file, bool all) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Record> RecordAt(uint64_t number) const;
  absl::Status ReadRecord(const Record& record, LogPosition from, uint64_t end, size_t max_bytes,
                          std::vector<LogLine>& lines) const;
  absl::StatusOr<LogPage> ReadRecordBack(const Record& record, LogPosition end, size_t max_lines,
                                         size_t max_bytes) const;

  const std::filesystem::path directory_;
  const base::Clock* const clock_;  // null: only for reading
  const uint64_t limit_;
  const int attempt_;
  base::UniqueFd index_;  // not valid: an empty log
  mutable absl::Mutex mutex_;
  std::atomic<bool> opened_ = false;  // stays so; then `index_` stays, too; set under the mutex
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> full_ = false;  // set under the mutex
  // The last time that InOrder has returned, in microseconds since 1970.
  std::atomic<int64_t> latest_ = std::numeric_limits<int64_t>::min();
  mutable std::atomic<uint64_t> total_ = 0;  // the sizes of all files; set under the mutex
  uint64_t records_ ABSL_GUARDED_BY(mutex_) = 0;
  mutable std::list<File*> open_ ABSL_GUARDED_BY(mutex_);  // the last used first
  // The map never shrinks; a File stays where it is.
  mutable std::map<std::pair<int, LogStream>, std::unique_ptr<File>> files_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tutti::service
