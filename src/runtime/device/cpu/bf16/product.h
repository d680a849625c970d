// Computes products of matrices by tiles that stay in registers, for forward, the input's gradient
// and Winograd's patches. Included by their sources alone, below the pragma of AVX512-BF16.
#pragma once

#include <array>
#include <span>
#include <utility>

#include "runtime/device/cpu/bf16/amx_product.h"

namespace tutti::device::cpu {

constexpr int kMostRows = 14;  // with two vectors each, and the weights', all of the registers
constexpr int kMostNarrowRows = 16;

// Multiplies `kRows` neighbouring pixels from `x` on, and writes the results of one block to `y`.
// kStep: how far apart the pixels lie, where that is known here, which saves an address for each;
// 0: p.step.
template <int kRows, int kVectors, int64_t kStep>
void Tile(const Product& p, const uint16_t* x, const uint16_t* weights, uint16_t* y) {
  __m512 sum[kRows][kVectors];
  for (auto& row : sum) std::fill_n(row, kVectors, _mm512_setzero_ps());
  const int64_t depth = p.depth, step = kStep > 0 ? kStep : p.step;
  for (int64_t tap = 0; tap < p.tap_count; ++tap) {
    const uint16_t* const from = x + p.taps[static_cast<size_t>(tap)];
    for (int64_t k = 0; k < depth; k += 2, weights += 2 * kVectors * kVector) {
      const __m512bh first = Pairs(weights);
      [[maybe_unused]] const __m512bh second = kVectors == 2 ? Pairs(weights + kBlock) : first;
#pragma GCC unroll 32
      for (int row = 0; row < kRows; ++row) {
        const __m512bh pixel = Repeated(from + row * step + k);
        sum[row][0] = _mm512_dpbf16_ps(sum[row][0], pixel, first);
        if constexpr (kVectors == 2) sum[row][1] = _mm512_dpbf16_ps(sum[row][1], pixel, second);
      }
    }
  }
#pragma GCC unroll 32
  for (int row = 0; row < kRows; ++row) {
    uint16_t* const to = y + row * p.to_step;
    if constexpr (kVectors == 2) {
      _mm512_storeu_si512(to, (__m512i)_mm512_cvtne2ps_pbh(sum[row][1], sum[row][0]));
    } else {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), (__m256i)_mm512_cvtneps_pbh(sum[row][0]));
    }
  }
}

// Does the same for one tap, in fp32 [rows][32]; pixels lie `depth` apart.
template <int kRows>
void SumTile(int64_t depth, const uint16_t* x, const uint16_t* weights, float* sums) {
  __m512 sum[kRows][2];
  for (auto& row : sum) std::fill_n(row, 2, _mm512_setzero_ps());
  for (int64_t k = 0; k < depth; k += 2, weights += 2 * kBlock) {
    const __m512bh first = Pairs(weights), second = Pairs(weights + kBlock);
#pragma GCC unroll 16
    for (int row = 0; row < kRows; ++row) {
      const __m512bh pixel = Repeated(x + row * depth + k);
      sum[row][0] = _mm512_dpbf16_ps(sum[row][0], pixel, first);
      sum[row][1] = _mm512_dpbf16_ps(sum[row][1], pixel, second);
    }
  }
#pragma GCC unroll 16
  for (int row = 0; row < kRows; ++row) {
    _mm512_storeu_ps(sums + row * kBlock, sum[row][0]);
    _mm512_storeu_ps(sums + row * kBlock + kVector, sum[row][1]);
  }
}
using SumTileFunction = void (*)(int64_t, const uint16_t*, const uint16_t*, float*);
template <int... kRows>
constexpr std::array<SumTileFunction, sizeof...(kRows)> AllSumTiles(
    std::integer_sequence<int, kRows...>) {
  return {&SumTile<kRows + 1>...};
}
constexpr auto kSumTiles = AllSumTiles(std::make_integer_sequence<int, kMostRows>());

using TileFunction = void (*)(const Product&, const uint16_t*, const uint16_t*, uint16_t*);
template <int kVectors, int64_t kStep, int... kRows>
constexpr std::array<TileFunction, sizeof...(kRows)> AllTiles(
    std::integer_sequence<int, kRows...>) {
  return {&Tile<kRows + 1, kVectors, kStep>...};
}
template <int64_t kStep>
constexpr auto kNarrow = AllTiles<1, kStep>(std::make_integer_sequence<int, kMostNarrowRows>());

// Lists the functions for tiles by their number of rows, from one on.
inline std::span<const TileFunction> TilesFor(const Product& p) {
  static constexpr auto kWide = AllTiles<2, 0>(std::make_integer_sequence<int, kMostRows>());
  if (p.width() == kBlock) return kWide;
  return p.step == kVector ? kNarrow<kVector> : p.step == kBlock ? kNarrow<kBlock> : kNarrow<0>;
}

// Returns how many tiles of about as many rows each there are: one of few rows waits for its own
// sums.
inline int64_t TilesOfLine(const Product& p, int64_t count) {
  const auto most = static_cast<int64_t>(TilesFor(p).size());
  return (count + most - 1) / most;
}

// Computes one block of results, by AMX where `tiles` is given. `prefetch`, if any, fetches once
// for each tile.
inline void Multiply(const Product& p, AmxTiles* tiles, const Lines& lines, int64_t block,
                     const uint16_t* x, uint16_t* y, Prefetch* prefetch = nullptr) {
  if (tiles != nullptr) return AmxLines(p, *tiles, lines, block, x, y);
  const uint16_t* const weights = p.weights + block * p.block;
  const auto tile_of = TilesFor(p);
  const int64_t of_line = TilesOfLine(p, lines.count);
  y += block * p.width();
  for (int64_t line = 0; line < lines.lines; ++line, x += lines.from_pitch, y += lines.to_pitch) {
    for (int64_t i = 0; i < of_line; ++i) {
      const int64_t at = lines.count * i / of_line, rows = lines.count * (i + 1) / of_line - at;
      tile_of[static_cast<size_t>(rows - 1)](p, x + at * p.step, weights, y + at * p.to_step);
      if (prefetch != nullptr) prefetch->Fetch();
    }
  }
}

}  // namespace tutti::device::cpu
