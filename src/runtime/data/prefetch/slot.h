// Slot is one batch in the making: its memory, allocated once, and how far it is. The pixels of
// different positions are written by different threads at the same time; everything else belongs to
// the loader's mutex.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/data/augment/mix.h"
#include "runtime/data/loader.h"

namespace tutti::data {

// An image that could not be read, at the position where it belonged.
struct UnreadableSample {
  int64_t position, sample;
  absl::Status status;  // names the image
};

class Slot {
 public:
  // Holds up to `max_count` images of `image_bytes` (0: no pixels) and `annotation_bytes` each (of
  // masks or boxes: the batch points to them as `annotations` say); pixels are aligned to 64 bytes.
  Slot(int64_t max_count, size_t image_bytes, size_t annotation_bytes, Annotations annotations,
       const BatchMemory& memory);

  // Takes the samples of a step; nothing of them is claimed yet.
  void Begin(int64_t epoch, int64_t step, std::span<const int64_t> samples, const Mix& mix);

  bool HasUnclaimed() const { return next_ < batch_.count && error_position_ < 0; }
  // Returns the position that the caller is to fill now. HasUnclaimed().
  int64_t Claim();
  // Notes what was replaced on the way to filling a claimed position.
  void NoteUnreadable(UnreadableSample unreadable) { unreadable_.push_back(std::move(unreadable)); }
  // Notes that the claimed position is filled, or cannot be. The batch's status is that of its
  // first bad position: positions are claimed in order, so it does not depend on how threads
  // interleave.
  void Finish(int64_t position, const absl::Status& status);

  // Returns whether nothing is left to do: every position is filled, or one failed and no thread is
  // at work on it.
  bool Complete() const { return in_flight_ == 0 && !HasUnclaimed(); }
  // Notes that nobody wants this batch any more; true if no thread is at work on it.
  bool Abandon() {
    abandoned_ = true;
    return in_flight_ == 0;
  }
  bool abandoned() const { return abandoned_; }
  bool idle() const { return in_flight_ == 0; }

  // Returns how the images of the step are mixed.
  const Mix& mix() const { return mix_; }
  // Says that the pixels at `position` are written. True for the second of a pair, with which it
  // may now be mixed; the first one's pixels are there for its caller. Without the loader's mutex.
  bool CompletesPair(int64_t position);

  const Batch& batch() const { return batch_; }
  const absl::Status& status() const { return status_; }
  int64_t filled() const { return next_ - in_flight_; }
  int64_t sample(int64_t position) const { return samples_[static_cast<size_t>(position)]; }
  void set_sample(int64_t position, int64_t sample) {
    samples_[static_cast<size_t>(position)] = sample;
  }
  // Lists them in the order of positions, once Complete().
  std::span<const UnreadableSample> unreadable();
  void set_label(int64_t position, int64_t label) { labels_.get()[position] = label; }
  void* pixels(int64_t position) {
    return pixels_.get() + static_cast<size_t>(position) * image_bytes_;
  }
  void* annotation(int64_t position) {
    return annotated_.get() + static_cast<size_t>(position) * annotation_bytes_;
  }

 private:
  const size_t image_bytes_, annotation_bytes_;
  const Annotations annotations_;
  const std::shared_ptr<std::byte> pixels_, annotated_;
  const std::shared_ptr<int64_t> labels_;
  std::vector<int64_t> samples_;
  std::vector<std::atomic<bool>> half_done_;  // of pairs: one of the two is written
  Batch batch_;
  Mix mix_;
  int64_t next_ = 0;       // the first position that nobody has claimed
  int64_t in_flight_ = 0;  // claimed and not finished
  int64_t error_position_ = -1;
  absl::Status status_;
  std::vector<UnreadableSample> unreadable_;
  bool abandoned_ = false;
};

}  // namespace tutti::data
