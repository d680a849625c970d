#include "runtime/data/prefetch/slot.h"

#include <algorithm>
#include <new>

namespace tutti::data {

namespace {
constexpr std::align_val_t kAlignment{64};
}

void Slot::FreeAligned::operator()(std::byte* bytes) const { ::operator delete(bytes, kAlignment); }

Slot::Slot(int64_t max_count, size_t image_bytes)
    : image_bytes_(image_bytes),
      pixels_(static_cast<std::byte*>(
          ::operator new(static_cast<size_t>(max_count) * image_bytes, kAlignment))),
      labels_(static_cast<size_t>(max_count)),
      samples_(static_cast<size_t>(max_count)) {}

void Slot::Begin(int64_t epoch, int64_t step, std::span<const int64_t> samples) {
  std::copy(samples.begin(), samples.end(), samples_.begin());
  batch_ = {.epoch = epoch,
            .step = step,
            .count = static_cast<int64_t>(samples.size()),
            .pixels = pixels_.get(),
            .labels = labels_.data(),
            .samples = samples_.data()};
  next_ = 0;
  error_position_ = -1;
  status_ = absl::OkStatus();
  abandoned_ = false;
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
