#include <algorithm>
#include <cstring>

#include "runtime/device/cpu/convolution.h"
#include "runtime/device/cpu/convolution_scratch.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4,avx512bf16,prefer-vector-width=512")
#include "runtime/device/cpu/convolution_tiles.h"

namespace tutti::device::cpu {
namespace {

constexpr int64_t kTileInputs = 8;
// Words that keep a pixel's channels, which go to as many panels, from meeting in one set of the
// first cache.
constexpr int64_t kApart = 16;
// Pairs of pixels between two visits of a tile's sums.
constexpr int64_t kPairsOfChunk = 400;

// The pixels of a chunk: bands of rows, laid out by pairs. A band's gradients are [row][pair], its
// activations have a border of `border` pixels around them and lie twice where there is one, from
// an even column on and from an odd one.
//
//   column          -1  0  1  2  3  4          of five pixels and the borders beside them
//   dy                 (0  1)(2  3)(4  .)
//   x, even            (0  1)(2  3)(4  .)      for the middle of a kernel's row
//   x, odd         (-1  0)(1  2)(3  4)(. .)    for its ends: the right one is a pair further
struct Geometry {
  explicit Geometry(const Convolution& shape) : c(shape), border(shape.kernel / 2) {
    pixels = c.images * c.height * c.width;
    if (border == 0) {  // rows mean nothing, so they are made long
      c.width = std::min<int64_t>(pixels, 128);
      c.height = (pixels + c.width - 1) / c.width;
      c.images = 1;
    }
    pairs = (c.width + 1) / 2;
    pitch = pairs + border;
    rows = std::clamp<int64_t>(kPairsOfChunk / pairs, 1, c.height);
    bands_of_image = (c.height + rows - 1) / rows;
    bands = c.images * bands_of_image;
    bands_of_chunk = std::max<int64_t>(1, kPairsOfChunk / (rows * pairs));
  }

  Convolution c;
  int64_t border, pixels;
  int64_t pairs, pitch;  // of a row of gradients, of activations
  int64_t rows, bands_of_image, bands, bands_of_chunk;
};

// `channels` of each of two pixels, null for one of zeros, to the panels at `to` [channels /
// width], which lie `panel` words apart.
void StorePair(const uint16_t* a, const uint16_t* b, int64_t channels, int64_t width, int64_t panel,
               uint32_t* to) {
  alignas(64) static constexpr uint16_t kZeros[kBlock] = {};
  for (int64_t channel = 0; channel < channels; channel += kBlock) {
    __m512i words[2];
    Interleave(a == nullptr ? kZeros : a + channel, b == nullptr ? kZeros : b + channel, words[0],
               words[1]);
    if (width == kBlock) {
      _mm512_storeu_si512(to, words[0]);
      _mm512_storeu_si512(to + 16, words[1]);
      to += panel;
      continue;
    }
    for (const __m512i& sixteen : words) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_castsi512_si256(sixteen));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + panel),
                          _mm512_extracti64x4_epi64(sixteen, 1));
      to += 2 * panel;
    }
  }
}

// Row `row` of an image, from column `first` on.
void StoreRow(const Geometry& g, const uint16_t* from, int64_t channels, int64_t image, int64_t row,
              int64_t first, int64_t pairs, int64_t width, int64_t panel, uint32_t* to) {
  const int64_t base = (image * g.c.height + row) * g.c.width;
  const auto pixel = [&](int64_t column) -> const uint16_t* {
    const bool inside = row >= 0 && row < g.c.height && column >= 0 && column < g.c.width &&
                        base + column < g.pixels;
    return inside ? from + (base + column) * channels : nullptr;
  };
  for (int64_t pair = 0; pair < pairs; ++pair, to += width) {
    StorePair(pixel(first + 2 * pair), pixel(first + 2 * pair + 1), channels, width, panel, to);
  }
}

// Of one thread: what a chunk is laid out to, and the sums so far.
struct Work {
  const uint32_t *even, *odd;  // activations [inputs / 8][band][row][pair][8]
  const uint32_t* gradients;   // [outputs / 32][band][row][pair][32]
  int64_t x_panel, dy_panel, x_band, bands;
};

// Adds the products of 8 inputs and 32 outputs to `sums` [8][32].
void Accumulate(const Geometry& g, const Work& work, const uint32_t* x, const uint32_t* dy,
                float* sums) {
  __m512 sum[kTileInputs][2];
  for (int64_t i = 0; i < kTileInputs; ++i) {
    sum[i][0] = _mm512_loadu_ps(sums + i * kBlock);
    sum[i][1] = _mm512_loadu_ps(sums + i * kBlock + 16);
  }
  for (int64_t band = 0; band < work.bands; ++band) {
    const uint32_t* from = x + band * work.x_band;
    for (int64_t row = 0; row < g.rows; ++row, from += g.pitch * kTileInputs) {
      for (int64_t pair = 0; pair < g.pairs; ++pair, dy += kBlock) {
        const __m512bh first = Pairs(dy), second = Pairs(dy + 16);
        const auto* const words = reinterpret_cast<const uint16_t*>(from + pair * kTileInputs);
#pragma GCC unroll 8
        for (int64_t i = 0; i < kTileInputs; ++i) {
          const __m512bh input = Repeated(words + 2 * i);
          sum[i][0] = _mm512_dpbf16_ps(sum[i][0], input, first);
          sum[i][1] = _mm512_dpbf16_ps(sum[i][1], input, second);
        }
      }
    }
  }
  for (int64_t i = 0; i < kTileInputs; ++i) {
    _mm512_storeu_ps(sums + i * kBlock, sum[i][0]);
    _mm512_storeu_ps(sums + i * kBlock + 16, sum[i][1]);
  }
}

// All taps and channels of a chunk; `sums` is [tap][outputs / 32][inputs / 8][8][32].
void AccumulateChunk(const Geometry& g, const Work& work, float* sums) {
  const int64_t kernel = g.c.kernel;
  for (int64_t tap = 0; tap < kernel * kernel; ++tap) {
    const int64_t column = tap % kernel;
    const bool ends = g.border > 0 && column != 1;
    const uint32_t* const x =
        (ends ? work.odd : work.even) + (tap / kernel * g.pitch + (column == 2)) * kTileInputs;
    for (int64_t block = 0; block < g.c.outputs / kBlock; ++block) {
      for (int64_t tile = 0; tile < g.c.inputs / kTileInputs; ++tile) {
        Accumulate(g, work, x + tile * work.x_panel, work.gradients + block * work.dy_panel, sums);
        sums += kTileInputs * kBlock;
      }
    }
  }
}

// Lays bands [first, last) out and adds their products to `sums`.
void AddChunk(const Geometry& g, const uint16_t* x, const uint16_t* dy, int64_t first, int64_t last,
              float* sums) {
  static thread_local Scratch<uint32_t> even, odd, gradients;
  const int64_t x_rows = g.rows + 2 * g.border;
  Work work = {.x_panel = (last - first) * x_rows * g.pitch * kTileInputs + kApart,
               .dy_panel = (last - first) * g.rows * g.pairs * kBlock + kApart,
               .x_band = x_rows * g.pitch * kTileInputs,
               .bands = last - first};
  uint32_t* const at_even = even.Of(work.x_panel * g.c.inputs / kTileInputs);
  uint32_t* const at_odd = odd.Of(g.border * work.x_panel * g.c.inputs / kTileInputs);
  uint32_t* const at_dy = gradients.Of(work.dy_panel * g.c.outputs / kBlock);
  for (int64_t band = first; band < last; ++band) {
    const int64_t image = band / g.bands_of_image, top = band % g.bands_of_image * g.rows;
    for (int64_t i = 0; i < g.rows; ++i) {
      StoreRow(g, dy, g.c.outputs, image, top + i, 0, g.pairs, kBlock, work.dy_panel,
               at_dy + ((band - first) * g.rows + i) * g.pairs * kBlock);
    }
    for (int64_t i = 0; i < x_rows; ++i) {
      const int64_t to = (band - first) * work.x_band + i * g.pitch * kTileInputs;
      const int64_t row = top + i - g.border;
      StoreRow(g, x, g.c.inputs, image, row, 0, g.pairs, kTileInputs, work.x_panel, at_even + to);
      if (g.border == 0) continue;
      StoreRow(g, x, g.c.inputs, image, row, -1, g.pitch, kTileInputs, work.x_panel, at_odd + to);
    }
  }
  work.even = at_even;
  work.odd = at_odd;
  work.gradients = at_dy;
  AccumulateChunk(g, work, sums);
}

// Of a block of outputs: the threads' sums to dw [outputs][tap][inputs].
void StoreBlock(const Geometry& g, const float* sums, int64_t of_thread, int threads, int64_t block,
                uint16_t* dw) {
  const int64_t taps = g.c.kernel * g.c.kernel, tiles = g.c.inputs / kTileInputs;
  for (int64_t tap = 0; tap < taps; ++tap) {
    const float* from = sums + (tap * g.c.outputs / kBlock + block) * tiles * kTileInputs * kBlock;
    uint16_t* const to = dw + (block * kBlock * taps + tap) * g.c.inputs;
    for (int64_t input = 0; input < g.c.inputs; input += 2, from += 2 * kBlock) {
      __m512 sum[2][2] = {};
      for (int thread = 0; thread < threads; ++thread) {
        for (int64_t i = 0; i < 4; ++i) {
          __m512& s = sum[i / 2][i % 2];
          s = _mm512_add_ps(s, _mm512_loadu_ps(from + thread * of_thread + i * 16));
        }
      }
      // A word of two inputs for each output.
      const __m512i rows = _mm512_mullo_epi32(
          _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
          _mm512_set1_epi32(static_cast<int>(taps * g.c.inputs / 2)));
      for (int64_t half = 0; half < 2; ++half) {
        const __m512i low = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(sum[0][half]));
        const __m512i high = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(sum[1][half]));
        _mm512_i32scatter_epi32(to + half * 16 * taps * g.c.inputs + input, rows,
                                _mm512_or_si512(low, _mm512_slli_epi32(high, 16)), 4);
      }
    }
  }
}

}  // namespace

void ConvolutionWeightGradient(const Convolution& shape, const uint16_t* x, const uint16_t* dy,
                               uint16_t* dw, int threads) {
  static thread_local Scratch<float> scratch;
  const Geometry g(shape);
  const int parts = static_cast<int>(std::min<int64_t>(threads, g.bands));
  const int64_t of_thread = g.c.kernel * g.c.kernel * g.c.inputs * g.c.outputs;
  float* const sums = scratch.Of(parts * of_thread);
#pragma omp parallel for num_threads(parts) schedule(static, 1)
  for (int part = 0; part < parts; ++part) {
    float* const own = sums + part * of_thread;
    std::fill_n(own, of_thread, 0.0f);
    const int64_t begin = g.bands * part / parts, end = g.bands * (part + 1) / parts;
    for (int64_t first = begin; first < end; first += g.bands_of_chunk) {
      AddChunk(g, x, dy, first, std::min(end, first + g.bands_of_chunk), own);
    }
  }
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t block = 0; block < shape.outputs / kBlock; ++block) {
    StoreBlock(g, sums, of_thread, parts, block, dw);
  }
}

}  // namespace tutti::device::cpu
#pragma GCC pop_options
#else

namespace tutti::device::cpu {

void ConvolutionWeightGradient(const Convolution&, const uint16_t*, const uint16_t*, uint16_t*,
                               int) {}

}  // namespace tutti::device::cpu
#endif
