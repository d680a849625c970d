// DecodedCache keeps decoded images that are small enough: an epoch after the first reads pixels
// instead of decoding again. Takes images until its budget is spent and never drops one: each is
// read once an epoch, so no image is worth more than another. Thread-safe, without locks on the way
// of a hit.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "runtime/data/image.h"

namespace tutti::data {

class DecodedCache {
 public:
  // 0 bytes: holds nothing and costs nothing.
  DecodedCache(int64_t dataset_size, int64_t budget_bytes);
  ~DecodedCache();
  DecodedCache(const DecodedCache&) = delete;
  DecodedCache& operator=(const DecodedCache&) = delete;

  // Returns the image of this sample, valid as long as the cache; `pixels` is null if it is not
  // there.
  ImageView Find(int64_t sample) const;
  // Copies the image, if the budget allows and it is not there yet.
  void Offer(int64_t sample, const ImageView& image);

 private:
  struct Entry;
  std::vector<std::atomic<Entry*>> entries_;
  std::atomic<int64_t> budget_;  // bytes that are left
};

}  // namespace tutti::data
