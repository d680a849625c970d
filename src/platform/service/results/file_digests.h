// FileDigests computes and keeps the hashes of files: a file is read again once its size, its times
// or its place on the disk have changed. Thread-safe.
#pragma once

#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
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
  static Stat StatOf(const struct stat& info);
  absl::StatusOr<std::string> Read(int fd, const std::filesystem::path& file) const;

  const std::atomic<bool>* const stop_;
  absl::Mutex mutex_;
  std::map<std::string, Known> known_ ABSL_GUARDED_BY(mutex_);  // by path
};

}  // namespace tutti::service
