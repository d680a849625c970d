#include <algorithm>
#include <cstring>

#include "runtime/device/cpu/bf16/convolution_kinds.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4,avx512bf16,prefer-vector-width=512")
#include "runtime/device/cpu/bf16/pixel_pairs.h"

namespace tutti::device::cpu {
namespace {

// The inputs of a tile; twice as many with 16 outputs, of which an input takes one register.
constexpr int64_t kTileInputs = 8;
// The pairs of pixels of a strip: the first cache holds a block's gradients for them, while all
// tiles of a group go over them.
constexpr int64_t kPairsOfStrip = 128;
// The values of x at a pair of pixels, over all that a row of the kernel needs, that the second
// cache holds for a chunk, which is read once for each block of outputs.
constexpr int64_t kGroupValues = 256;

// The sums of many channels go to memory and back at every chunk.
int64_t PairsOfChunk(const Convolution& c, int threads) {
  const bool many = c.kernel == 1 && c.inputs * c.outputs >= 512 * 512;
  return many ? std::clamp<int64_t>(c.out_pixels() / 2 / threads, kPairsOfChunk, 512)
              : kPairsOfChunk;
}

// Rows of a chunk, over all of its bands.
struct Strip {
  int64_t first, last;
};
int64_t StripsOf(const Geometry& g, int64_t rows) {
  return std::clamp<int64_t>((rows * g.pairs + kPairsOfStrip / 2) / kPairsOfStrip, 1, rows);
}

// The products of so many inputs and vectors of outputs, added to `sums` [inputs][outputs] or, the
// first ones, put there.
template <int64_t kInputs, int64_t kVectors>
void Accumulate(const Geometry& g, const Work& work, const Strip& strip, const uint32_t* x,
                const uint32_t* dy, float* sums) {
  const bool none = work.first && strip.first == 0;
  __m512 sum[kInputs][kVectors];
#pragma GCC unroll 16
  for (int64_t i = 0; i < kInputs * kVectors; ++i) {
    sum[i / kVectors][i % kVectors] =
        none ? _mm512_setzero_ps() : _mm512_loadu_ps(sums + i * kVector);
  }
  const int64_t row_step = g.x_step() * g.pitch * kPanel, second_panel = work.dy_panel;
  int64_t row_of_band = strip.first % g.rows;
  x += strip.first / g.rows * work.x_band + row_of_band * row_step;
  dy += strip.first * g.pairs * kPanel;
  for (int64_t row = strip.first; row < strip.last; ++row) {
    for (int64_t pair = 0; pair < g.pairs; ++pair, dy += kPanel) {
      const __m512bh first = Pairs(dy);
      [[maybe_unused]] const __m512bh second = kVectors == 2 ? Pairs(dy + second_panel) : first;
      const auto* const words = reinterpret_cast<const uint16_t*>(x + pair * kPanel);
#pragma GCC unroll 16
      for (int64_t i = 0; i < kInputs; ++i) {
        const __m512bh input = Repeated(words + 2 * i);
        sum[i][0] = _mm512_dpbf16_ps(sum[i][0], input, first);
        if constexpr (kVectors == 2) sum[i][1] = _mm512_dpbf16_ps(sum[i][1], input, second);
      }
    }
    x += row_step;
    if (++row_of_band == g.rows) {
      row_of_band = 0;
      x += work.x_band - g.rows * row_step;
    }
  }
#pragma GCC unroll 16
  for (int64_t i = 0; i < kInputs * kVectors; ++i) {
    _mm512_storeu_ps(sums + i * kVector, sum[i / kVectors][i % kVectors]);
  }
}

using AccumulateFunction = void (*)(const Geometry&, const Work&, const Strip&, const uint32_t*,
                                    const uint32_t*, float*);
struct TileKind {
  int64_t inputs;
  AccumulateFunction accumulate;
};
TileKind TileKindOf(const Geometry& g) {
  if (g.block() == kBlock) return {kTileInputs, Accumulate<kTileInputs, 2>};
  // A stem's inputs are one and a half of a panel.
  if (g.c.is_stem()) return {kTileInputs, Accumulate<kTileInputs, 1>};
  return {2 * kTileInputs, Accumulate<2 * kTileInputs, 1>};
}

// Tiles [first, last) of one tap and one block of outputs.
struct Tiles {
  int64_t tap, block, first, last;
};

void AccumulateTiles(const Geometry& g, const Work& work, const TileKind& kind, const Tiles& tiles,
                     float* sums, Prefetch& x_prefetch, Prefetch& dy_prefetch) {
  const uint32_t* const x =
      BeginOf(g, work, tiles.tap / g.tap_columns(), tiles.tap % g.tap_columns());
  const uint32_t* const dy = work.gradients + tiles.block * g.block() / kPanel * work.dy_panel;
  float* const of_block = sums + (tiles.tap * g.blocks() + tiles.block) * g.inputs() * g.block();
  const int64_t rows = work.bands * g.rows;
  const int64_t strips = StripsOf(g, rows);
  for (int64_t i = 0; i < strips; ++i) {
    const Strip strip = {rows * i / strips, rows * (i + 1) / strips};
    for (int64_t tile = tiles.first; tile < tiles.last; ++tile) {
      const int64_t input = tile * kind.inputs;
      kind.accumulate(g, work, strip, x + input / kPanel * work.x_panel + input % kPanel, dy,
                      of_block + input * g.block());
      x_prefetch.Fetch();
      dy_prefetch.Fetch();
    }
  }
}

// All taps and channels of a chunk; `sums` is [tap][block of outputs][input][output of the block].
void AccumulateChunk(const Geometry& g, const Work& work, float* sums, Prefetch& x_prefetch,
                     Prefetch& dy_prefetch) {
  const TileKind kind = TileKindOf(g);
  const int64_t tiles = g.inputs() / kind.inputs;
  const int64_t of_group = std::max<int64_t>(2, kGroupValues / kind.inputs / g.layouts);
  for (int64_t first = 0; first < tiles; first += of_group) {
    for (int64_t block = 0; block < g.blocks(); ++block) {
      for (int64_t tap = 0; tap < g.taps(); ++tap) {
        AccumulateTiles(g, work, kind, {tap, block, first, std::min(tiles, first + of_group)}, sums,
                        x_prefetch, dy_prefetch);
      }
    }
  }
}

// Lays bands [first, last) out.
Work LayOut(const Geometry& g, const uint16_t* x, const uint16_t* dy, int64_t first, int64_t last) {
  static thread_local Scratch<uint32_t> x_scratch, dy_scratch;
  const int64_t bands = last - first, panels = (g.inputs() + kBlock - 1) / kBlock * 2;
  Work work = {.x_panel = bands * g.x_rows * g.pitch * kPanel + kApart,
               .x_band = g.x_rows * g.pitch * kPanel,
               .dy_panel = bands * g.rows * g.pairs * kPanel + kApart,
               .bands = bands,
               .first = false};
  work.x_layout = panels * work.x_panel;
  uint32_t* const at_x = x_scratch.Of(g.layouts * work.x_layout);
  uint32_t* const at_dy = dy_scratch.Of(work.dy_panel * g.c.outputs / kPanel);
  for (int64_t band = first; band < last; ++band) {
    const int64_t image = band / g.bands_of_image, top = band % g.bands_of_image * g.rows;
    for (int64_t i = 0; i < g.rows; ++i) {
      StoreGradients(g, dy, image, top + i, work.dy_panel,
                     at_dy + ((band - first) * g.rows + i) * g.pairs * kPanel);
    }
    for (int64_t i = 0; i < g.x_rows; ++i) {
      const int64_t row = top * g.x_step() + i - g.c.border();
      uint32_t* const to = at_x + (band - first) * work.x_band + i * g.pitch * kPanel;
      if (g.c.is_stem()) StoreStemRow(g, x, image, row, work.x_panel, to);
      for (int64_t layout = 0; layout < g.layouts && !g.c.is_stem(); ++layout) {
        StoreRow(g, x, image, row, layout, work.x_panel, to + layout * work.x_layout);
      }
    }
  }
  work.x = at_x;
  work.gradients = at_dy;
  return work;
}

// The products of bands [first, last) to `sums`.
void AddBands(const Geometry& g, const uint16_t* x, const uint16_t* dy, int64_t first, int64_t last,
              float* sums) {
  const int64_t x_values = g.c.images * g.c.height * g.c.width * g.c.inputs;
  const int64_t dy_values = g.c.out_pixels() * g.c.outputs;
  const int64_t visits = g.taps() * g.inputs() / TileKindOf(g).inputs * g.blocks() *
                         StripsOf(g, g.bands_of_chunk * g.rows);
  const int64_t begin = first;
  for (; first < last; first += g.bands_of_chunk) {
    const int64_t next = std::min(last, first + g.bands_of_chunk);
    const int64_t after = std::min(last, next + g.bands_of_chunk);
    Work work = LayOut(g, x, dy, first, next);
    work.first = first == begin;
    // Bands follow each other in memory, but for what is left out at an image's end.
    Prefetch x_prefetch(x + x_values * next / g.bands, x + x_values * after / g.bands, visits);
    Prefetch dy_prefetch(dy + dy_values * next / g.bands, dy + dy_values * after / g.bands, visits);
    AccumulateChunk(g, work, sums, x_prefetch, dy_prefetch);
  }
}

// The threads' sums of two inputs and a block's outputs, as words of both for one output each.
void AddUp(const float* from, int64_t of_thread, int threads, int64_t vectors, __m512i words[2]) {
  __m512 sum[2][2] = {};  // [input][vector of the outputs]
  for (int thread = 0; thread < threads; ++thread) {
    for (int64_t i = 0; i < 2 * vectors; ++i) {
      __m512& s = sum[i / vectors][i % vectors];
      s = _mm512_add_ps(s, _mm512_loadu_ps(from + thread * of_thread + i * kVector));
    }
  }
  for (int64_t half = 0; half < vectors; ++half) {
    words[half] = Join(sum[0][half], sum[1][half]);
  }
}

// Stores a block of outputs, whose weights have `inputs` values for each tap (in a stem, a row of
// the kernel). They are transposed 32 inputs at a time: the outputs' rows are often a multiple of 4
// KiB apart, of which the caches hold only a few.
void StoreBlock(const Geometry& g, const float* sums, int threads, int64_t block, uint16_t* dw) {
  const int64_t inputs = g.c.is_stem() ? g.c.kernel * g.c.inputs : g.c.inputs;
  const int64_t row = g.taps() * inputs, width = g.block();
  const __m512i outputs =
      _mm512_slli_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), 4);
  alignas(64) uint32_t turned[kBlock][kBlock / 2];
  for (int64_t tap = 0; tap < g.taps(); ++tap) {
    const float* from = sums + (tap * g.blocks() + block) * g.inputs() * width;
    uint16_t* const to = dw + block * width * row + tap * inputs;
    for (int64_t first = 0; first < inputs; first += kBlock) {
      const int64_t count = std::min(kBlock, inputs - first);
      for (int64_t pair = 0; pair < (count + 1) / 2; ++pair, from += 2 * width) {
        __m512i words[2];
        AddUp(from, g.sums(), threads, width / kVector, words);
        for (int64_t half = 0; half < width / kVector; ++half) {
          _mm512_i32scatter_epi32(&turned[half * kVector][pair], outputs, words[half], 4);
        }
      }
      for (int64_t output = 0; output < width; ++output) {
        std::memcpy(to + output * row + first, turned[output], 2 * static_cast<size_t>(count));
      }
    }
  }
}

}  // namespace

void DirectWeightGradient(const Convolution& shape, const uint16_t* x, const uint16_t* dy,
                          uint16_t* dw, int threads) {
  static thread_local Scratch<float> scratch;
  const Geometry g(shape, PairsOfChunk(shape, threads), threads);
  const int parts = static_cast<int>(std::min<int64_t>(threads, g.bands));
  float* const sums = scratch.Of(parts * g.sums());
#pragma omp parallel for num_threads(parts) schedule(static, 1)
  for (int part = 0; part < parts; ++part) {
    AddBands(g, x, dy, g.bands * part / parts, g.bands * (part + 1) / parts,
             sums + part * g.sums());
  }
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t block = 0; block < g.blocks(); ++block) {
    StoreBlock(g, sums, parts, block, dw);
  }
}

}  // namespace tutti::device::cpu
#pragma GCC pop_options
#endif
