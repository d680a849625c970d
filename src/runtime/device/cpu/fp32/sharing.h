// How threads share the sums of a weights' gradient, which go over all pixels. Each thread takes a
// part of the pixels, the same that it has in the other passes over these images, and has sums of
// its own, which are added up in the end: what a pixel gives never moves from one thread's caches
// to another's, which costs a third of a step where these lie in different parts of a processor.
// Sums that are many beside what a part's pixels give are shared instead: all threads lay out the
// same pixels, then each takes some of the products.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tutti::device::cpu::fp32 {

// From `first` on, up to `last`.
struct Range {
  int64_t first, last;
  int64_t size() const { return last - first; }
  Range Part(int64_t part, int64_t parts) const {
    return {first + size() * part / parts, first + size() * (part + 1) / parts};
  }
};

// Returns whether each of `threads` parts has sums of its own, or all share one part's. `of_each`:
// floats that are laid out for each of `all`; `sums`: of a part, in floats.
inline bool HasOwnSums(const Range& all, int64_t of_each, int64_t sums, int threads) {
  constexpr int64_t kWorthIt = 4;  // a part's floats for each of its sums
  return all.size() / threads * of_each >= kWorthIt * sums;
}

// Adds `count` sums of the other parts, each `of_part` floats behind the one before, to the
// first's.
inline void AddParts(float* sums, int64_t count, int64_t of_part, int parts) {
  for (int part = 1; part < parts; ++part) {
    const float* const other = sums + part * of_part;
    for (int64_t i = 0; i < count; ++i) sums[i] += other[i];
  }
}

}  // namespace tutti::device::cpu::fp32
