#include "runtime/device/cpu/convolution.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "runtime/device/cpu/convolution_scratch.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4,avx512bf16,prefer-vector-width=512")
#include "runtime/device/cpu/convolution_tiles.h"

namespace tutti::device::cpu {
namespace {

constexpr int kMostRows = 14;  // with two vectors each, and the weights', all of the registers

// A product: of pixels with `depth` channels each by weights [block][tap][depth / 2][32][2]. `taps`
// says how far from a pixel the one is that a tap multiplies, in elements.
struct Product {
  int64_t depth, outputs;
  std::array<int64_t, 9> taps;
  int64_t tap_count;
  const uint16_t* weights;
};

// `kRows` neighbouring pixels from `x` on, the outputs of one block to `y`.
template <int kRows>
void Tile(const Product& p, const uint16_t* x, const uint16_t* weights, uint16_t* y) {
  __m512 sum[kRows][2];
  for (auto& row : sum) row[0] = row[1] = _mm512_setzero_ps();
  const int64_t depth = p.depth;
  for (int64_t tap = 0; tap < p.tap_count; ++tap) {
    const uint16_t* const from = x + p.taps[static_cast<size_t>(tap)];
    for (int64_t k = 0; k < depth; k += 2, weights += 2 * kBlock) {
      const __m512bh first = Pairs(weights), second = Pairs(weights + kBlock);
#pragma GCC unroll 16
      for (int row = 0; row < kRows; ++row) {
        const __m512bh pixel = Repeated(from + row * depth + k);
        sum[row][0] = _mm512_dpbf16_ps(sum[row][0], pixel, first);
        sum[row][1] = _mm512_dpbf16_ps(sum[row][1], pixel, second);
      }
    }
  }
  for (int row = 0; row < kRows; ++row) {
    _mm512_storeu_si512(y + row * p.outputs,
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

// `count` neighbouring pixels, the outputs of one block.
void Row(const Product& p, int64_t block, const uint16_t* x, uint16_t* y, int64_t count) {
  const uint16_t* const weights = p.weights + block * p.tap_count * p.depth * kBlock;
  for (int64_t at = 0; at < count; at += kMostRows) {
    const int64_t rows = std::min<int64_t>(kMostRows, count - at);
    kTiles[static_cast<size_t>(rows - 1)](p, x + at * p.depth, weights,
                                          y + at * p.outputs + block * kBlock);
  }
}

// A part of the pixels that the second cache holds beside a block's weights.
constexpr int64_t kPartElements = 128 << 10;

// As many parts of at most `largest` of `count` things as give every thread the same number.
int64_t PartsOf(int64_t count, int64_t largest, int threads) {
  const int64_t parts = (count + largest - 1) / largest;
  return std::min(count, (parts + threads - 1) / threads * threads);
}

void MultiplyPixels(const Product& p, const uint16_t* x, uint16_t* y, int64_t pixels, int threads) {
  const int64_t tiles = (pixels + kMostRows - 1) / kMostRows;
  const int64_t largest = std::clamp<int64_t>(kPartElements / p.depth / kMostRows, 4, 72);
  const int64_t parts = PartsOf(tiles, largest, threads);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t first = tiles * part / parts * kMostRows;
    const int64_t last = std::min(pixels, tiles * (part + 1) / parts * kMostRows);
    for (int64_t block = 0; block < p.outputs / kBlock; ++block) {
      Row(p, block, x + first * p.depth, y + first * p.outputs, last - first);
    }
  }
}

// With a border of zeros, one pixel wide.
void CopyPadded(const Convolution& c, int64_t depth, const uint16_t* image, uint16_t* to) {
  const auto width = static_cast<size_t>(c.width * depth), pixel = static_cast<size_t>(depth);
  std::fill_n(to, width + 2 * pixel, uint16_t{0});
  to += width + 2 * pixel;
  for (int64_t row = 0; row < c.height; ++row, to += width + 2 * pixel, image += width) {
    std::fill_n(to, pixel, uint16_t{0});
    std::memcpy(to + pixel, image, 2 * width);
    std::fill_n(to + pixel + width, pixel, uint16_t{0});
  }
  std::fill_n(to, width + 2 * pixel, uint16_t{0});
}

void MultiplyImages(const Convolution& c, const Product& p, const uint16_t* x, uint16_t* y,
                    int threads) {
  const int64_t pitch = (c.width + 2) * p.depth, padded = (c.height + 2) * pitch;
  const int64_t pixels = c.height * c.width;
  const int64_t largest = std::clamp<int64_t>(2 * kPartElements / padded, 1, 8);
  const int64_t parts = PartsOf(c.images, largest, threads);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t part = 0; part < parts; ++part) {
    static thread_local Scratch<uint16_t> scratch;
    const int64_t first = c.images * part / parts, count = c.images * (part + 1) / parts - first;
    uint16_t* const images = scratch.Of(count * padded);
    for (int64_t i = 0; i < count; ++i) {
      CopyPadded(c, p.depth, x + (first + i) * pixels * p.depth, images + i * padded);
    }
    for (int64_t block = 0; block < p.outputs / kBlock; ++block) {
      for (int64_t i = 0; i < count; ++i) {
        for (int64_t row = 0; row < c.height; ++row) {
          Row(p, block, images + i * padded + row * pitch,
              y + ((first + i) * pixels + row * c.width) * p.outputs, c.width);
        }
      }
    }
  }
}

void Multiply(const Convolution& c, Product& p, const uint16_t* x, uint16_t* y, int threads) {
  p.tap_count = c.kernel * c.kernel;
  for (int64_t tap = 0; tap < p.tap_count; ++tap) {
    p.taps[static_cast<size_t>(tap)] = (tap / c.kernel * (c.width + 2) + tap % c.kernel) * p.depth;
  }
  if (c.kernel == 1) return MultiplyPixels(p, x, y, c.images * c.height * c.width, threads);
  MultiplyImages(c, p, x, y, threads);
}

// [outputs][tap][inputs] to [output block][tap][inputs / 2][32][2].
void PackForward(const Convolution& c, const uint16_t* w, uint16_t* to, int threads) {
  const int64_t taps = c.kernel * c.kernel, depth = taps * c.inputs;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t block = 0; block < c.outputs / kBlock; ++block) {
    const uint16_t* const from = w + block * kBlock * depth;
    uint16_t* const at = to + block * kBlock * depth;
    const __m512i rows =
        _mm512_mullo_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                           _mm512_set1_epi32(static_cast<int>(depth / 2)));
    for (int64_t k = 0; k < depth; k += 2) {
      for (int64_t half = 0; half < 2; ++half) {
        const __m512i words = _mm512_i32gather_epi32(rows, from + half * 16 * depth + k, 4);
        _mm512_storeu_si512(at + k * kBlock + half * kBlock, words);
      }
    }
  }
}

// [outputs][tap][inputs] to [input block][the taps turned round][outputs / 2][32][2].
void PackBackward(const Convolution& c, const uint16_t* w, uint16_t* to, int threads) {
  const int64_t taps = c.kernel * c.kernel, row = taps * c.inputs;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t block = 0; block < c.inputs / kBlock; ++block) {
    uint16_t* at = to + block * kBlock * taps * c.outputs;
    for (int64_t tap = taps - 1; tap >= 0; --tap) {
      const uint16_t* from = w + tap * c.inputs + block * kBlock;
      for (int64_t k = 0; k < c.outputs; k += 2, from += 2 * row, at += 2 * kBlock) {
        __m512i first, second;
        Interleave(from, from + row, first, second);
        _mm512_storeu_si512(at, first);
        _mm512_storeu_si512(at + kBlock, second);
      }
    }
  }
}

uint16_t* WeightScratch(const Convolution& c) {
  static thread_local Scratch<uint16_t> scratch;
  return scratch.Of(c.outputs * c.inputs * c.kernel * c.kernel);
}

}  // namespace

bool Takes(const Convolution& c) {
  static const bool can = __builtin_cpu_supports("avx512bf16") &&
                          __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
  return can && c.images > 0 && c.height > 0 && c.width > 0 && c.inputs > 0 && c.outputs > 0 &&
         c.inputs % kBlock == 0 && c.outputs % kBlock == 0 && c.inputs <= 8192 &&
         c.outputs <= 8192 && (c.kernel == 1 || c.kernel == 3);
}

void ConvolutionForward(const Convolution& c, const uint16_t* x, const uint16_t* w, uint16_t* y,
                        int threads) {
  uint16_t* const packed = WeightScratch(c);
  PackForward(c, w, packed, threads);
  Product product = {.depth = c.inputs, .outputs = c.outputs, .weights = packed};
  Multiply(c, product, x, y, threads);
}

void ConvolutionInputGradient(const Convolution& c, const uint16_t* dy, const uint16_t* w,
                              uint16_t* dx, int threads) {
  uint16_t* const packed = WeightScratch(c);
  PackBackward(c, w, packed, threads);
  Product product = {.depth = c.outputs, .outputs = c.inputs, .weights = packed};
  Multiply(c, product, dy, dx, threads);
}

}  // namespace tutti::device::cpu
#pragma GCC pop_options
#else

namespace tutti::device::cpu {

bool Takes(const Convolution&) { return false; }
void ConvolutionForward(const Convolution&, const uint16_t*, const uint16_t*, uint16_t*, int) {}
void ConvolutionInputGradient(const Convolution&, const uint16_t*, const uint16_t*, uint16_t*,
                              int) {}

}  // namespace tutti::device::cpu
#endif
