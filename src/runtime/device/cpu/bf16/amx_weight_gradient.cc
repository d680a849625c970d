#include <algorithm>

#include "runtime/device/cpu/bf16/convolution_kinds.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4,avx512bf16,prefer-vector-width=512")
#include "runtime/device/cpu/bf16/amx.h"
#include "runtime/device/cpu/bf16/pixel_pairs.h"

// The sums are products of the gradients, turned round, by the values of x, of 16 pairs of pixels
// at a time. A tap finds its pairs of x in one piece, over the rows of a band, because the
// gradients have zeros wherever x has more than they do: behind a row, and between two of them by a
// step of 2.
namespace tutti::device::cpu {
namespace {

constexpr int64_t kPairsOfTile = kTileDepth / 2;
constexpr int64_t kTileWords = kTileRows * kPairsOfTile;
constexpr int64_t kSquare = kBlock * kBlock;  // sums of 32 outputs and 32 inputs
// The bytes of a chunk, with all its layouts, that the second cache holds.
constexpr int64_t kBytesOfChunk = 1 << 20;

int64_t PairsOfChunk(const Convolution& c) {
  const int64_t layouts = c.kernel == 1 ? 1 : c.stride == 1 ? 2 : 3;
  return std::clamp<int64_t>(kBytesOfChunk / 4 / (layouts * c.inputs + c.outputs), 96, 1024);
}

// From one row of the output's pairs to the next.
int64_t RowPitch(const Geometry& g) { return g.x_step() * g.pitch; }
// Pairs of a band's gradients, with zeros.
int64_t PairsOfBand(const Geometry& g) {
  return (g.rows * RowPitch(g) + kPairsOfTile - 1) / kPairsOfTile * kPairsOfTile;
}

// A band's, to panels of 16 outputs as [pairs / 16][16 outputs][16 pairs].
void LayOutGradients(const Geometry& g, const uint16_t* dy, int64_t band, int64_t panel,
                     uint32_t* to) {
  const int64_t image = band / g.bands_of_image, top = band % g.bands_of_image * g.rows;
  const int64_t pairs = PairsOfBand(g), pitch = RowPitch(g), panels = g.c.outputs / kPanel;
  for (int64_t i = 0; i < g.rows; ++i) {
    StoreGradients(g, dy, image, top + i, panel, to + i * pitch * kPanel);
  }
  for (int64_t p = 0; p < panels; ++p) {
    uint32_t* const of_panel = to + p * panel;
    for (int64_t i = 0; i < g.rows; ++i) {
      std::fill_n(of_panel + (i * pitch + g.pairs) * kPanel, (pitch - g.pairs) * kPanel, 0U);
    }
    std::fill_n(of_panel + g.rows * pitch * kPanel, (pairs - g.rows * pitch) * kPanel, 0U);
    for (int64_t pair = 0; pair < pairs; pair += kPairsOfTile) TurnRound(of_panel + pair * kPanel);
  }
}

// Bands [first, last). Zeros of gradients meet what lies behind a panel of x: no stale bytes.
Work LayOut(const Geometry& g, const uint16_t* x, const uint16_t* dy, int64_t first, int64_t last) {
  static thread_local Scratch<uint32_t> x_scratch, dy_scratch;
  const int64_t bands = last - first, panels = g.c.inputs / kPanel;
  const int64_t behind = (RowPitch(g) + 2 * kPairsOfTile) * kPanel;
  Work work = {.x_panel = bands * g.x_rows * g.pitch * kPanel + kApart,
               .x_band = g.x_rows * g.pitch * kPanel,
               .dy_panel = bands * PairsOfBand(g) * kPanel + kApart,
               .bands = bands,
               .first = false};
  work.x_layout = panels * work.x_panel;
  uint32_t* const at_x = x_scratch.Of(g.layouts * work.x_layout + behind);
  uint32_t* const at_dy = dy_scratch.Of(work.dy_panel * g.c.outputs / kPanel);
  for (int64_t band = first; band < last; ++band) {
    const int64_t image = band / g.bands_of_image, top = band % g.bands_of_image * g.rows;
    LayOutGradients(g, dy, band, work.dy_panel, at_dy + (band - first) * PairsOfBand(g) * kPanel);
    for (int64_t i = 0; i < g.x_rows; ++i) {
      uint32_t* const to = at_x + (band - first) * work.x_band + i * g.pitch * kPanel;
      for (int64_t layout = 0; layout < g.layouts; ++layout) {
        StoreRow(g, x, image, top * g.x_step() + i - g.c.border(), layout, work.x_panel,
                 to + layout * work.x_layout);
      }
    }
  }
  for (int64_t panel = 1; panel <= g.layouts * panels; ++panel) {
    std::fill_n(at_x + panel * work.x_panel - kApart, kApart, 0U);
  }
  std::fill_n(at_x + g.layouts * work.x_layout, behind, 0U);
  work.x = at_x;
  work.gradients = at_dy;
  return work;
}

// Adds the products of 32 outputs and 32 inputs to `sums`, or puts the first ones there.
void Accumulate(const Geometry& g, const Work& work, const uint32_t* dy, const uint32_t* x,
                float* sums) {
  constexpr int64_t kSumBytes = 4 * kBlock, kHalf = kBlock / 2;
  float* const lower = sums + kTileRows * kBlock;
  __asm__ volatile("" ::: "memory");  // the loads below do not tell the compiler that they read
  if (work.first) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  } else {
    _tile_loadd(0, sums, kSumBytes);
    _tile_loadd(1, sums + kHalf, kSumBytes);
    _tile_loadd(2, lower, kSumBytes);
    _tile_loadd(3, lower + kHalf, kSumBytes);
  }
  const int64_t words = PairsOfBand(g) * kPanel;
  for (int64_t band = 0; band < work.bands; ++band, x += work.x_band) {
    for (int64_t at = 0; at < words; at += kTileWords, dy += kTileWords) {
      _tile_loadd(6, x + at, kTileBytes);
      _tile_loadd(4, dy, kTileBytes);
      _tile_loadd(7, x + at + work.x_panel, kTileBytes);
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(1, 4, 7);
      _tile_loadd(5, dy + work.dy_panel, kTileBytes);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_stored(0, sums, kSumBytes);
  _tile_stored(1, sums + kHalf, kSumBytes);
  _tile_stored(2, lower, kSumBytes);
  _tile_stored(3, lower + kHalf, kSumBytes);
}

// The products of bands [first, last) to `sums`, [tap][outputs / 32][inputs / 32][32][32].
void AddBands(const Geometry& g, const uint16_t* x, const uint16_t* dy, int64_t first, int64_t last,
              float* sums) {
  AmxTiles tiles;
  const int64_t begin = first, across = g.c.inputs / kBlock, blocks = g.c.outputs / kBlock;
  for (; first < last; first += g.bands_of_chunk) {
    Work work = LayOut(g, x, dy, first, std::min(last, first + g.bands_of_chunk));
    work.first = first == begin;
    tiles.Use(kTileRows);
    for (int64_t block = 0; block < blocks; ++block) {
      for (int64_t tap = 0; tap < g.taps(); ++tap) {
        const uint32_t* const of_tap = BeginOf(g, work, tap / g.c.kernel, tap % g.c.kernel);
        for (int64_t i = 0; i < across; ++i) {
          Accumulate(g, work, work.gradients + 2 * block * work.dy_panel,
                     of_tap + 2 * i * work.x_panel,
                     sums + ((tap * blocks + block) * across + i) * kSquare);
        }
      }
    }
  }
}

// The sums of the threads for a block of outputs.
void StoreBlock(const Geometry& g, const float* sums, int threads, int64_t block, uint16_t* dw) {
  const int64_t across = g.c.inputs / kBlock, blocks = g.c.outputs / kBlock;
  for (int64_t output = 0; output < kBlock; ++output) {
    uint16_t* to = dw + (block * kBlock + output) * g.taps() * g.c.inputs;
    for (int64_t tap = 0; tap < g.taps(); ++tap) {
      const float* from = sums + (tap * blocks + block) * across * kSquare + output * kBlock;
      for (int64_t i = 0; i < across; ++i, from += kSquare, to += kBlock) {
        __m512 low = _mm512_setzero_ps(), high = low;
        for (int thread = 0; thread < threads; ++thread) {
          low = _mm512_add_ps(low, _mm512_loadu_ps(from + thread * g.sums()));
          high = _mm512_add_ps(high, _mm512_loadu_ps(from + thread * g.sums() + kBlock / 2));
        }
        _mm512_storeu_si512(to, (__m512i)_mm512_cvtne2ps_pbh(high, low));
      }
    }
  }
}

}  // namespace

void AmxWeightGradient(const Convolution& c, const uint16_t* x, const uint16_t* dy, uint16_t* dw,
                       int threads) {
  static thread_local Scratch<float> scratch;
  const Geometry g(c, PairsOfChunk(c));
  const int parts = static_cast<int>(std::min<int64_t>(threads, g.bands));
  float* const sums = scratch.Of(parts * g.sums());
#pragma omp parallel for num_threads(parts) schedule(static, 1)
  for (int part = 0; part < parts; ++part) {
    AddBands(g, x, dy, g.bands * part / parts, g.bands * (part + 1) / parts,
             sums + part * g.sums());
  }
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t block = 0; block < c.outputs / kBlock; ++block) {
    StoreBlock(g, sums, parts, block, dw);
  }
}

}  // namespace tutti::device::cpu
#pragma GCC pop_options
#else

namespace tutti::device::cpu {

void AmxWeightGradient(const Convolution&, const uint16_t*, const uint16_t*, uint16_t*, int) {}

}  // namespace tutti::device::cpu
#endif
