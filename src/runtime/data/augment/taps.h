// AxisTaps computes which source samples make an output pixel, and with what weights: one direction
// of a bilinear resize with antialiasing, as torch.nn.functional.interpolate(mode="bilinear",
// antialias=True, align_corners=False) and PIL's BILINEAR define it. Each output pixel is the mean
// of the source under a triangle whose half-width is max(1, source size / output size) pixels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/data/augment/geometry.h"

namespace tutti::data {

// Output pixel i is the sum over k < count of weights[i * count + k] * source[first[i] + k]; its
// weights add up to 1. Every pixel has as many, some of them 0.
struct AxisTaps {
  int count = 0;
  std::vector<int> first;  // one for each kept output pixel
  std::vector<float> weights;
  // All source samples that are looked at: [begin, end).
  int begin = 0;
  int end = 0;

  size_t size() const { return first.size(); }

  // `limit`: the source has pixels 0 to limit - 1. Keeps its memory from call to call.
  void Compute(const Axis& axis, int limit);

  // Computes the same resize of a plane with one sample for `ratio` pixels, `limit` samples in all.
  // Samples are first enlarged as libjpeg-turbo does it, in one step with the resize: 2 by a
  // triangle (3/4 of the nearer sample, 1/4 of the other), other ratios by repetition.
  void ComputeOfPlane(const AxisTaps& pixels, int ratio, int limit);
};

// The same weights as the kernel takes them: whole numbers of 1 / kOne that add up to kOne, in
// pairs of neighbouring samples. A sample at either end may be none of the taps': its weight is 0.
struct PairTaps {
  static constexpr int kBits = 14, kOne = 1 << kBits;
  int count = 0;                 // pairs of each output pixel
  std::vector<int> first;        // the first pair's first sample
  std::vector<int32_t> weights;  // count for each; of a pair's first sample in the lower 16 bits

  // Pairs begin where the taps do; or, if `on_grid`, an even number of samples behind taps.begin.
  void Compute(const AxisTaps& taps, bool on_grid);
};

}  // namespace tutti::data
