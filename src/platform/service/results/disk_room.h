// Tells whether the disk of the service's folder has room for new jobs, beside what those that are
// there still have to note: bytes, and files where their number is fixed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace tutti::service {

// Returns the free bytes below which a disk of that size takes nothing more: 64 MiB, or a 64th of a
// smaller one, and 4 MiB at least.
uint64_t LeastRoom(uint64_t bytes_of_disk);

struct DiskRoom {
  // ResourceExhausted if the disk is full but for LeastRoom, or 256 files: a line with what is
  // free, where, and what to do. OK if it cannot be told.
  absl::Status status;
  uint64_t least = 0;      // LeastRoom of the disk; 0 if it cannot be told
  uint64_t available = 0;  // bytes
  uint64_t disk = 0;       // in all
};

// Asks the file system of `directory`; reads no file.
DiskRoom RoomOf(const std::filesystem::path& directory);

// Returns the status of RoomOf alone, or ResourceExhausted where `bytes` that are to come would
// leave less than LeastRoom; OutOfRange if they would on an empty disk: nobody need wait for room.
absl::Status CheckRoom(const std::filesystem::path& directory, uint64_t bytes = 0);

// Tells whether that is what a write has met: a full disk, or a quota.
bool IsFullDisk(const absl::Status& status);

// DiskGauge asks the same, and knows what the file system does not tell: a quota of the service's
// user, which only a write meets. From such a write on the disk is full until a small file can be
// written again. Thread-safe.
class DiskGauge {
 public:
  explicit DiskGauge(std::filesystem::path directory) : directory_(std::move(directory)) {}

  DiskRoom Look() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Check(uint64_t bytes = 0) ABSL_LOCKS_EXCLUDED(mutex_);
  // Tells what has become of a write in the folder, of up to `bytes`. Nothing follows from what is
  // no IsFullDisk, nor from a large write where a small file can be written.
  void NoteWrite(const absl::Status& status, uint64_t bytes = 0) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Returns why the last writes were refused, if they would be now.
  absl::Status Refusal() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Probe() const;

  const std::filesystem::path directory_;
  absl::Mutex mutex_;
  absl::Status refusal_ ABSL_GUARDED_BY(mutex_);
  absl::Duration probed_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();  // SteadyNow
};

}  // namespace tutti::service
