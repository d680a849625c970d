// Chunks cuts data into a chunk for every rank, in rank order and without gaps.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace tutti::comm {

// Returns where part `part` of `count` elements begins that are cut into `parts` (part `parts`: the
// end), all but the last ones of equal length and in whole blocks of `block` elements; the last
// ones may be shorter or empty.
inline size_t EvenCut(size_t count, size_t block, size_t parts, size_t part) {
  const size_t blocks = (count + block - 1) / block;
  const size_t stride = (blocks + parts - 1) / parts * block;
  return std::min(count, part * stride);
}

class Chunks {
 public:
  // Chunk r has sizes[r] elements of `width` bytes.
  Chunks(std::byte* data, std::span<const size_t> sizes, size_t width) : data_(data) {
    offsets_.reserve(sizes.size() + 1);
    for (const size_t size : sizes) offsets_.push_back(offsets_.back() + size * width);
  }

  // Returns `count` elements of `width` bytes cut evenly for `ranks`, at multiples of a cache line.
  static Chunks Even(std::byte* data, size_t count, size_t width, int ranks) {
    Chunks chunks(data, {}, width);
    const size_t bytes = count * width;
    const size_t line = std::max<size_t>(64, width);
    const auto parts = static_cast<size_t>(ranks);
    for (size_t r = 1; r <= parts; ++r) chunks.offsets_.push_back(EvenCut(bytes, line, parts, r));
    return chunks;
  }

  std::span<std::byte> operator[](int chunk) const { return Range(chunk, chunk + 1); }
  // Returns the bytes of chunks [first, last).
  std::span<std::byte> Range(int first, int last) const {
    return {data_ + offsets_[first], offsets_[last] - offsets_[first]};
  }
  std::span<std::byte> All() const { return {data_, offsets_.back()}; }
  int count() const { return static_cast<int>(offsets_.size()) - 1; }

 private:
  std::byte* data_;
  std::vector<size_t> offsets_ = {0};
};

}  // namespace tutti::comm
