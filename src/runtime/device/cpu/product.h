// Products of matrices by tiles that stay in registers, for forward and the input's gradient.
// Included by their sources alone, below the pragma of AVX512-BF16.
#pragma once

#include <array>
#include <utility>

#include "runtime/device/cpu/amx_product.h"

namespace tutti::device::cpu {

constexpr int kMostRows = 14;  // with two vectors each, and the weights', all of the registers

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

// One block of results, by AMX where `tiles` is given.
inline void Multiply(const Product& p, AmxTiles* tiles, const Lines& lines, int64_t block,
                     const uint16_t* x, uint16_t* y) {
  if (tiles != nullptr) return AmxLines(p, *tiles, lines, block, x, y);
  const uint16_t* const weights = p.weights + block * p.block;
  y += block * kBlock;
  for (int64_t line = 0; line < lines.lines; ++line, x += lines.from_pitch, y += lines.to_pitch) {
    for (int64_t at = 0; at < lines.count; at += kMostRows) {
      const int64_t rows = std::min<int64_t>(kMostRows, lines.count - at);
      kTiles[static_cast<size_t>(rows - 1)](p, x + at * p.step, weights, y + at * p.to_step);
    }
  }
}

}  // namespace tutti::device::cpu
