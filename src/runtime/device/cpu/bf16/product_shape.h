// Defines what a product of matrices multiplies, for forward and the input's gradient. Included by
// their sources alone, below the pragma of AVX512-BF16.
#pragma once

#include <array>

#include "runtime/device/cpu/bf16/convolution_tiles.h"

namespace tutti::device::cpu {

// A product: of pixels with `depth` values each by weights [block][tap][depth / 2][width][2] for 32
// results each, or for 16 where there are no more; blocks lie `block` elements apart. `taps` says
// how far from a pixel the one is that a tap multiplies; neighbouring pixels lie `step` apart and
// their results, `outputs` each, `to_step`.
struct Product {
  int64_t depth, outputs;
  int64_t step, to_step;
  std::array<int64_t, 9> taps;
  int64_t tap_count;
  const uint16_t* weights;
  int64_t block;

  int64_t width() const { return BlockOf(outputs); }
  int64_t blocks() const { return outputs / width(); }
};

// Describes `lines` lines of `count` neighbouring pixels each; a line lies `from_pitch`, its
// results lie `to_pitch` elements from the one before.
struct Lines {
  int64_t lines, count, from_pitch = 0, to_pitch = 0;
};

// A part of the pixels that the second cache holds beside a block's weights.
constexpr int64_t kPartElements = 128 << 10;

// Returns into how many parts of at most `largest` the `count` things are cut, so that every thread
// has the same number of parts.
inline int64_t PartsOf(int64_t count, int64_t largest, int threads) {
  const int64_t parts = (count + largest - 1) / largest;
  return std::min(count, (parts + threads - 1) / threads * threads);
}

inline Product ProductOf(int64_t depth, int64_t outputs, const uint16_t* weights) {
  return {.depth = depth,
          .outputs = outputs,
          .step = depth,
          .to_step = outputs,
          .taps = {},
          .tap_count = 1,
          .weights = weights,
          .block = depth * BlockOf(outputs)};
}

}  // namespace tutti::device::cpu
