// How threads share the sums of a weights' gradient, which go over all pixels. Each thread takes a
// part of the pixels, the same that it has in the other passes over these images, and has sums of
// its own, which are added up in the end: what a pixel gives never moves from one thread's caches
// to another's, which costs half of the step where they lie in different parts of a processor. Sums
// that are many beside what a part's pixels give are shared instead: all threads lay out the same
// pixels, then each takes some of the products.
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

// Returns how many parts have sums of their own: one for each thread, or 1, which all share.
// `of_each`: floats that are laid out for each of `all`; `sums`: of a part, in floats.
inline int PartsOf(const Range& all, int64_t of_each, int64_t sums, int threads) {
  constexpr int64_t kWorthIt = 4;  // a part's floats for each of its sums
  const bool has_own = all.size() / threads * of_each >= kWorthIt * sums;
  return has_own ? threads : 1;
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
