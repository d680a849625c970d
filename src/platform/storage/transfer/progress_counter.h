// Counts how far a transfer has come, and tells of it twice a second. Thread-safe.
#pragma once

#include <atomic>
#include <functional>

#include "absl/time/time.h"
#include "platform/storage/storage_request.h"

namespace tutti::storage {

using ProgressListener = std::function<void(const StorageProgress&)>;

class ProgressCounter {
 public:
  ProgressCounter(int64_t of_objects, int64_t of_bytes)
      : of_objects_(of_objects), of_bytes_(of_bytes) {}

  void AddBytes(int64_t bytes) { bytes_ += bytes; }
  void AddObject() { ++objects_; }
  StorageProgress Now() const { return {objects_, of_objects_, bytes_, of_bytes_}; }

  // Does `work` in another thread, and calls `listener` meanwhile in this one, each `interval` in
  // which something has happened. `listener` may be empty.
  void ReportDuring(const std::function<void()>& work, const ProgressListener& listener,
                    absl::Duration interval = absl::Milliseconds(500));

 private:
  const int64_t of_objects_, of_bytes_;
  std::atomic<int64_t> objects_ = 0, bytes_ = 0;
};

}  // namespace tutti::storage
