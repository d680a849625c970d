// Computes products of matrices by AMX. Included by product.h alone, below the pragma of
// AVX512-BF16.
#pragma once

#include <immintrin.h>

#include "runtime/device/cpu/bf16/amx.h"
#include "runtime/device/cpu/bf16/product_shape.h"

namespace tutti::device::cpu {

inline bool AmxTakes(const Product& p) { return p.depth % kTileDepth == 0 && HasAmx(); }

// Neighbouring pixels and where their results go.
struct Pixels {
  const uint16_t* from;
  uint16_t* to;
};

// Multiplies `rows` pixels from each of one or two places, by a block's weights.
template <bool kTwo>
void AmxTile(const Product& p, int64_t rows, const Pixels& one, const Pixels& other,
             const uint16_t* weights) {
  constexpr int64_t kWeightBytes = 4 * kBlock, kSumBytes = 4 * kBlock;
  alignas(64) float sums[2][kTileRows][kBlock];
  __asm__ volatile("" ::: "memory");  // the loads below do not tell the compiler that they read
  _tile_zero(0);
  _tile_zero(1);
  if constexpr (kTwo) {
    _tile_zero(2);
    _tile_zero(3);
  }
  const int64_t step = 2 * p.step;
  for (int64_t tap = 0; tap < p.tap_count; ++tap) {
    const int64_t shift = p.taps[static_cast<size_t>(tap)];
    for (int64_t k = shift; k < shift + p.depth; k += kTileDepth, weights += kTileDepth * kBlock) {
      _tile_loadd(6, weights, kWeightBytes);
      _tile_loadd(7, weights + kBlock, kWeightBytes);
      _tile_loadd(4, one.from + k, step);
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(1, 4, 7);
      if constexpr (kTwo) {
        _tile_loadd(5, other.from + k, step);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
      }
    }
  }
  _tile_stored(0, sums[0][0], kSumBytes);
  _tile_stored(1, sums[0][0] + kBlock / 2, kSumBytes);
  if constexpr (kTwo) {
    _tile_stored(2, sums[1][0], kSumBytes);
    _tile_stored(3, sums[1][0] + kBlock / 2, kSumBytes);
  }
  for (int half = 0; half < (kTwo ? 2 : 1); ++half) {
    uint16_t* to = half == 0 ? one.to : other.to;
    for (int64_t row = 0; row < rows; ++row, to += p.to_step) {
      const float* const sum = sums[half][row];
      _mm512_storeu_si512(
          to, (__m512i)_mm512_cvtne2ps_pbh(_mm512_load_ps(sum + kBlock / 2), _mm512_load_ps(sum)));
    }
  }
}

// Computes one block of results. Tiles have as many rows each: a line's last one may begin before
// the one before it ends.
inline void AmxLines(const Product& p, AmxTiles& tiles, const Lines& lines, int64_t block,
                     const uint16_t* x, uint16_t* y) {
  if (lines.count == 0) return;
  const int64_t parts = (lines.count + kTileRows - 1) / kTileRows;
  const int64_t rows = (lines.count + parts - 1) / parts;
  const uint16_t* const weights = p.weights + block * p.block;
  const auto part_at = [&](int64_t i) -> Pixels {
    const int64_t line = i / parts, first = std::min(i % parts * rows, lines.count - rows);
    return {x + line * lines.from_pitch + first * p.step,
            y + line * lines.to_pitch + first * p.to_step + block * kBlock};
  };
  tiles.Use(rows);
  const int64_t all = lines.lines * parts;
  int64_t i = 0;
  for (; i + 1 < all; i += 2) AmxTile<true>(p, rows, part_at(i), part_at(i + 1), weights);
  if (i < all) AmxTile<false>(p, rows, part_at(i), part_at(i), weights);
}

}  // namespace tutti::device::cpu
