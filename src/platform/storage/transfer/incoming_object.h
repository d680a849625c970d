// One large object on its way into a file, in ranges that come in any order. Its bytes are hashed
// in their order, by whichever thread has brought the range that was missing. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "platform/storage/objects/content_hash.h"
#include "platform/storage/objects/object_store.h"
#include "platform/storage/transfer/activity.h"
#include "platform/storage/transfer/part_file.h"

namespace tutti::storage {

class IncomingObject {
 public:
  // `index` is the caller's name of it; `activity`, which may be null, is told of each block that
  // is hashed.
  IncomingObject(size_t index, std::unique_ptr<ObjectReader> reader, std::unique_ptr<PartFile> part,
                 bool with_md5, Activity* activity);

  // Returns the next range that has to be fetched; none if there is none any more.
  std::optional<int64_t> NextRange();
  // Takes in a range that has been written to the part, or none: `range` -1. Returns the hash once
  // all ranges are there, to one caller.
  absl::StatusOr<std::optional<ContentHash::Result>> TakeIn(int64_t range,
                                                            std::span<const char> bytes);

  size_t index() const { return index_; }
  ObjectReader& reader() { return *reader_; }
  PartFile& part() { return *part_; }
  // Returns the bytes of the ranges that were there at the beginning.
  int64_t bytes_before() const { return bytes_before_; }

 private:
  absl::Status HashBack(int64_t range);

  const size_t index_;
  const std::unique_ptr<ObjectReader> reader_;
  const std::unique_ptr<PartFile> part_;
  Activity* const activity_;
  int64_t bytes_before_ = 0;
  ContentHash hash_;  // of who has set `hashing_`
  absl::Mutex mutex_;
  int64_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t hashed_ ABSL_GUARDED_BY(mutex_) = 0;  // ranges
  bool hashing_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<bool> there_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tutti::storage
