#include "runtime/data/prefetch/decoded_cache.h"

#include <cstring>
#include <memory>

namespace tutti::data {

struct DecodedCache::Entry {
  ImageView view;
  std::unique_ptr<uint8_t[]> pixels;
};

DecodedCache::DecodedCache(int64_t dataset_size, int64_t budget_bytes)
    : entries_(budget_bytes > 0 ? static_cast<size_t>(dataset_size) : 0), budget_(budget_bytes) {}

DecodedCache::~DecodedCache() {
  for (const std::atomic<Entry*>& entry : entries_) delete entry.load(std::memory_order_relaxed);
}

ImageView DecodedCache::Find(int64_t sample) const {
  if (entries_.empty()) return {};
  const Entry* entry = entries_[static_cast<size_t>(sample)].load(std::memory_order_acquire);
  return entry == nullptr ? ImageView{} : entry->view;
}

void DecodedCache::Offer(int64_t sample, const ImageView& image) {
  if (entries_.empty()) return;
  const size_t bytes =
      static_cast<size_t>(image.width) * static_cast<size_t>(image.height) * kBytesPerPixel;
  const auto cost = static_cast<int64_t>(bytes + sizeof(Entry));
  if (budget_.fetch_sub(cost, std::memory_order_relaxed) < cost) {
    budget_.fetch_add(cost, std::memory_order_relaxed);
    return;
  }
  auto entry = std::make_unique<Entry>();
  entry->pixels.reset(new uint8_t[bytes]);
  std::memcpy(entry->pixels.get(), image.pixels, bytes);
  entry->view = {entry->pixels.get(), image.width, image.height};
  Entry* expected = nullptr;
  if (entries_[static_cast<size_t>(sample)].compare_exchange_strong(expected, entry.get(),
                                                                    std::memory_order_acq_rel)) {
    (void)entry.release();
  } else {
    budget_.fetch_add(cost, std::memory_order_relaxed);  // another thread was first
  }
}

}  // namespace tutti::data
