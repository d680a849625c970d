// IncomingObject is one large object on its way into a file, in ranges that come in any order. Its
// bytes are hashed in their order, by whichever thread has brought the range that was missing.
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "platform/storage/objects/content_hash.h"
#include "platform/storage/objects/object_store.h"
#include "platform/storage/transfer/activity.h"
#include "platform/storage/transfer/part_file.h"

namespace tutti::storage {

class IncomingObject {
 public:
  // `index` is the caller's name of it; `activity`, which may be
  // null, is told of each block that is hashed.
  IncomingObject(size_t index, std::unique_ptr<ObjectReader> reader, std::unique_ptr<PartFile> part,
                 ContentHash::Kinds hashes, Activity* activity);

  // Returns the next range that has to be fetched and that `is_wanted`, of ranges in their order;
  // none if there is none any more.
  std::optional<int64_t> NextRange(const std::function<bool(int64_t range)>& is_wanted);
  // Returns whether each range that had to be fetched was returned by NextRange.
  bool AllRangesTaken();
  // Takes in a range that has been written to the part, or none: `range` -1. Without its bytes it
  // is read back. Returns the hash once all ranges are there, to one caller.
  absl::StatusOr<std::optional<ContentHash::Result>> TakeIn(int64_t range,
                                                            std::span<const char> bytes);

  // Returns whether this range is the next one to be hashed, and its caller hashes it: he calls
  // Hash with all its bytes in their order as they come, and then TakeInHashed, as TakeIn.
  bool BeginHashing(int64_t range);
  void Hash(absl::string_view bytes) { hash_.Update(bytes); }
  absl::StatusOr<std::optional<ContentHash::Result>> TakeInHashed(int64_t range);

  // Notes that another node gave a range of it.
  void NotePeer() { has_of_peers_ = true; }
  // Returns whether bytes may not be as the store gave them to this process.
  bool MayHaveOfPeers() const { return has_of_peers_ || bytes_before_ > 0; }

  size_t index() const { return index_; }
  ObjectReader& reader() { return *reader_; }
  PartFile& part() { return *part_; }
  // Returns the bytes of the ranges that were there at the beginning.
  int64_t bytes_before() const { return bytes_before_; }

 private:
  absl::Status HashBack(int64_t range);
  absl::StatusOr<std::optional<ContentHash::Result>> HashOn(int64_t range,
                                                            std::span<const char> bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t index_;
  const std::unique_ptr<ObjectReader> reader_;
  const std::unique_ptr<PartFile> part_;
  Activity* const activity_;
  int64_t bytes_before_ = 0;
  std::atomic<bool> has_of_peers_ = false;
  ContentHash hash_;  // of who has set `hashing_`
  absl::Mutex mutex_;
  int64_t next_ ABSL_GUARDED_BY(mutex_) = 0;  // before it all are taken
  std::vector<bool> taken_ ABSL_GUARDED_BY(mutex_);
  int64_t hashed_ ABSL_GUARDED_BY(mutex_) = 0;  // ranges
  bool hashing_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<bool> there_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tutti::storage
