#include "platform/storage/transfer/incoming_object.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "platform/storage/objects/guarded.h"

namespace tutti::storage {
namespace {

constexpr int64_t kReadBack = 256 << 10;  // stays in the cache of a processor

}  // namespace

IncomingObject::IncomingObject(size_t index, std::unique_ptr<ObjectReader> reader,
                               std::unique_ptr<PartFile> part, ContentHash::Kinds hashes,
                               Activity* activity)
    : index_(index),
      reader_(std::move(reader)),
      part_(std::move(part)),
      activity_(activity),
      hash_(hashes),
      taken_(part_->range_count(), false),
      there_(part_->range_count(), false) {
  for (int64_t range = 0; range < part_->range_count(); ++range) {
    there_[range] = taken_[range] = part_->WasThere(range);
    if (there_[range]) bytes_before_ += part_->RangeBytes(range);
  }
}

std::optional<int64_t> IncomingObject::NextRange(
    const std::function<bool(int64_t range)>& is_wanted) {
  absl::MutexLock lock(&mutex_);
  while (next_ < part_->range_count() && taken_[next_]) ++next_;
  for (int64_t range = next_; range < part_->range_count(); ++range) {
    if (taken_[range] || !is_wanted(range)) continue;
    taken_[range] = true;
    return range;
  }
  return std::nullopt;
}

bool IncomingObject::AllRangesTaken() {
  absl::MutexLock lock(&mutex_);
  while (next_ < part_->range_count() && taken_[next_]) ++next_;
  return next_ == part_->range_count();
}

absl::Status IncomingObject::HashBack(int64_t range) {
  std::vector<char> block(kReadBack);
  const int64_t begin = part_->OffsetOf(range), end = begin + part_->RangeBytes(range);
  for (int64_t at = begin; at < end; at += kReadBack) {
    const std::span<char> bytes(block.data(), std::min(kReadBack, end - at));
    TUTTI_RETURN_IF_ERROR(part_->ReadBack(at, bytes));
    hash_.Update({bytes.data(), bytes.size()});
    if (activity_ != nullptr) activity_->Note();
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<ContentHash::Result>> IncomingObject::TakeIn(
    int64_t range, std::span<const char> bytes) {
  absl::MutexLock lock(&mutex_);
  if (range >= 0) there_[range] = true;
  if (hashing_) return std::nullopt;  // who hashes goes on with this one
  hashing_ = true;
  return HashOn(range, bytes);
}

bool IncomingObject::BeginHashing(int64_t range) {
  absl::MutexLock lock(&mutex_);
  if (hashing_ || hashed_ != range) return false;
  return hashing_ = true;
}

absl::StatusOr<std::optional<ContentHash::Result>> IncomingObject::TakeInHashed(int64_t range) {
  absl::MutexLock lock(&mutex_);
  there_[range] = true;
  ++hashed_;
  return HashOn(-1, {});
}

// Hashes what is there from the first range on that is not hashed, as far as there is no gap.
absl::StatusOr<std::optional<ContentHash::Result>> IncomingObject::HashOn(
    int64_t range, std::span<const char> bytes) {
  const int64_t count = part_->range_count();
  while (hashed_ < count && there_[hashed_]) {
    const int64_t next = hashed_;
    mutex_.Unlock();
    absl::Status status;
    if (next == range && !bytes.empty()) {
      hash_.Update({bytes.data(), bytes.size()});
    } else {
      status = Guarded([&] { return HashBack(next); });
    }
    mutex_.Lock();
    if (!status.ok()) return status;
    ++hashed_;
  }
  hashing_ = hashed_ == count;  // the end comes once
  if (hashed_ < count) return std::nullopt;
  return hash_.Finish();
}

}  // namespace tutti::storage
