#include "platform/storage/transfer/incoming_object.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "platform/storage/transfer/guarded.h"

namespace tutti::storage {
namespace {

constexpr int64_t kReadBack = 1 << 20;

}  // namespace

IncomingObject::IncomingObject(size_t index, std::unique_ptr<ObjectReader> reader,
                               std::unique_ptr<PartFile> part, bool with_md5, Activity* activity)
    : index_(index),
      reader_(std::move(reader)),
      part_(std::move(part)),
      activity_(activity),
      hash_(with_md5),
      there_(part_->range_count(), false) {
  for (int64_t range = 0; range < part_->range_count(); ++range) {
    there_[range] = part_->WasThere(range);
    if (there_[range]) bytes_before_ += part_->RangeBytes(range);
  }
}

std::optional<int64_t> IncomingObject::NextRange() {
  absl::MutexLock lock(&mutex_);
  while (next_ < part_->range_count() && part_->WasThere(next_)) ++next_;
  if (next_ == part_->range_count()) return std::nullopt;
  return next_++;
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
  const int64_t count = part_->range_count();
  while (hashed_ < count && there_[hashed_]) {
    const int64_t next = hashed_;
    mutex_.Unlock();
    absl::Status status;
    if (next == range) {
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
