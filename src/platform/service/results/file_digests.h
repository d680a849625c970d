// FileDigests computes and keeps the hashes of files: a file is read again once its size, its times
// or its place on the disk have changed, and by one thread at a time: who asks for one that is
// being read waits for what that finds. Thread-safe.
#pragma once

#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace tutti::service {

class FileDigests {
 public:
  // Once `stop` is true what is under way ends as Cancelled: a file may take minutes. `stop`
  // outlives it.
  explicit FileDigests(const std::atomic<bool>* stop) : stop_(stop) {}

  // Returns the SHA-256 of a file's bytes, hexadecimal.
  absl::StatusOr<std::string> Of(const std::filesystem::path& file);

 private:
  // Device, inode, size, times of modification and change.
  using Stat = std::array<int64_t, 5>;
  struct Known {
    Stat stat;
    std::string digest;
  };
  // A file that is being read. The members are guarded by `mutex_`.
  struct Reading {
    Stat stat;
    bool done = false;
    absl::StatusOr<std::string> digest = std::string();
  };
  static Stat StatOf(const struct stat& info);
  // Returns what is known of the file, or what another thread finds that is reading it. Without a
  // value it is for the caller to read it, whose `reading` is known to the others until EndReading.
  std::optional<absl::StatusOr<std::string>> BeginReading(const std::string& file,
                                                          const std::shared_ptr<Reading>& reading)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void EndReading(const std::string& file, Reading& reading,
                  const absl::StatusOr<std::string>& digest, bool settled)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::string> Read(int fd, const std::filesystem::path& file) const;

  const std::atomic<bool>* const stop_;
  absl::Mutex mutex_;
  std::map<std::string, Known> known_ ABSL_GUARDED_BY(mutex_);                        // by path
  std::map<std::string, std::shared_ptr<Reading>> readings_ ABSL_GUARDED_BY(mutex_);  // by path
};

}  // namespace tutti::service
