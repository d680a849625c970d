#include "runtime/data/prefetch/slot.h"

#include <algorithm>
#include <new>
#include <utility>

namespace tutti::data {

namespace {

std::shared_ptr<std::byte> OwnMemory(size_t bytes) {
  constexpr std::align_val_t kAlignment{64};
  return {static_cast<std::byte*>(::operator new(bytes, kAlignment)),
          [](std::byte* memory) { ::operator delete(memory, kAlignment); }};
}

// Null: no bytes.
std::shared_ptr<std::byte> Allocate(const BatchMemory& memory, size_t bytes) {
  if (bytes == 0) return nullptr;
  return memory ? memory(bytes) : OwnMemory(bytes);
}

std::shared_ptr<int64_t> Labels(const BatchMemory& memory, size_t count) {
  auto bytes = Allocate(memory, count * sizeof(int64_t));
  auto* const labels = new (bytes.get()) int64_t[count]();
  return {std::move(bytes), labels};
}

}  // namespace

Slot::Slot(int64_t max_count, size_t image_bytes, size_t annotation_bytes, Annotations annotations,
           const BatchMemory& memory)
    : image_bytes_(image_bytes),
      annotation_bytes_(annotation_bytes),
      annotations_(annotations),
      pixels_(Allocate(memory, static_cast<size_t>(max_count) * image_bytes)),
      annotated_(Allocate(memory, static_cast<size_t>(max_count) * annotation_bytes)),
      labels_(Labels(memory, static_cast<size_t>(max_count))),
      samples_(static_cast<size_t>(max_count)),
      half_done_(static_cast<size_t>(max_count + 1) / 2) {}

void Slot::Begin(int64_t epoch, int64_t step, std::span<const int64_t> samples, const Mix& mix) {
  std::copy(samples.begin(), samples.end(), samples_.begin());
  mix_ = mix;
  for (auto& half : half_done_) half.store(false, std::memory_order_relaxed);
  batch_ = {.epoch = epoch,
            .step = step,
            .count = static_cast<int64_t>(samples.size()),
            .pixels = pixels_.get(),
            .labels = labels_.get(),
            .own_share = mix.own,
            .samples = samples_.data()};
  if (annotations_ == Annotations::kMasks) {
    batch_.masks = reinterpret_cast<const uint8_t*>(annotated_.get());
  } else if (annotations_ == Annotations::kBoxes) {
    batch_.boxes = reinterpret_cast<const float*>(annotated_.get());
    batch_.most_boxes = static_cast<int64_t>(annotation_bytes_ / (5 * sizeof(float)));
  }
  next_ = 0;
  error_position_ = -1;
  status_ = absl::OkStatus();
  abandoned_ = false;
  unreadable_.clear();
}

std::span<const UnreadableSample> Slot::unreadable() {
  std::stable_sort(unreadable_.begin(), unreadable_.end(),
                   [](const auto& a, const auto& b) { return a.position < b.position; });
  return unreadable_;
}

bool Slot::CompletesPair(int64_t position) {
  return half_done_[static_cast<size_t>(position / 2)].exchange(true, std::memory_order_acq_rel);
}

int64_t Slot::Claim() {
  ++in_flight_;
  return next_++;
}

void Slot::Finish(int64_t position, const absl::Status& status) {
  --in_flight_;
  if (status.ok() || (error_position_ >= 0 && error_position_ < position)) return;
  error_position_ = position;
  status_ = status;
}

}  // namespace tutti::data
