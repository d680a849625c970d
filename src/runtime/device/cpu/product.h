// Products of matrices by tiles that stay in registers, for forward and the input's gradient.
// Included by their sources alone, below the pragma of AVX512-BF16.
#pragma once

#include <array>
#include <utility>

#include "runtime/device/cpu/convolution_tiles.h"

namespace tutti::device::cpu {

constexpr int kMostRows = 14;  // with two vectors each, and the weights', all of the registers

// A product: of pixels with `depth` values each by weights [block][tap][depth / 2][32][2], whose
// blocks lie `block` elements apart. `taps` says how far from a pixel the one is that a tap
// multiplies; neighbouring pixels lie `step` apart and their results, `outputs` each, `to_step`.
struct Product {
  int64_t depth, outputs;
  int64_t step, to_step;
  std::array<int64_t, 9> taps;
  int64_t tap_count;
  const uint16_t* weights;
  int64_t block;
};

// `kRows` neighbouring pixels from `x` on, the results of one block to `y`.
template <int kRows>
void Tile(const Product& p, const uint16_t* x, const uint16_t* weights, uint16_t* y) {
  __m512 sum[kRows][2];
  for (auto& row : sum) row[0] = row[1] = _mm512_setzero_ps();
  const int64_t depth = p.depth, step = p.step;
  for (int64_t tap = 0; tap < p.tap_count; ++tap) {
    const uint16_t* const from = x + p.taps[static_cast<size_t>(tap)];
    for (int64_t k = 0; k < depth; k += 2, weights += 2 * kBlock) {
      const __m512bh first = Pairs(weights), second = Pairs(weights + kBlock);
#pragma GCC unroll 16
      for (int row = 0; row < kRows; ++row) {
        const __m512bh pixel = Repeated(from + row * step + k);
        sum[row][0] = _mm512_dpbf16_ps(sum[row][0], pixel, first);
        sum[row][1] = _mm512_dpbf16_ps(sum[row][1], pixel, second);
      }
    }
  }
  for (int row = 0; row < kRows; ++row) {
    _mm512_storeu_si512(y + row * p.to_step,
                        (__m512i)_mm512_cvtne2ps_pbh(sum[row][1], sum[row][0]));
  }
}

using TileFunction = void (*)(const Product&, const uint16_t*, const uint16_t*, uint16_t*);
template <int... kRows>
constexpr std::array<TileFunction, sizeof...(kRows)> AllTiles(
    std::integer_sequence<int, kRows...>) {
  return {&Tile<kRows + 1>...};
}
constexpr auto kTiles = AllTiles(std::make_integer_sequence<int, kMostRows>());

// `count` neighbouring pixels, the results of one block.
inline void Row(const Product& p, int64_t block, const uint16_t* x, uint16_t* y, int64_t count) {
  for (int64_t at = 0; at < count; at += kMostRows) {
    const int64_t rows = std::min<int64_t>(kMostRows, count - at);
    kTiles[static_cast<size_t>(rows - 1)](p, x + at * p.step, p.weights + block * p.block,
                                          y + at * p.to_step + block * kBlock);
  }
}

// A part of the pixels that the second cache holds beside a block's weights.
constexpr int64_t kPartElements = 128 << 10;

// As many parts of at most `largest` of `count` things as give every thread the same number.
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
          .block = depth * kBlock};
}

}  // namespace tutti::device::cpu
