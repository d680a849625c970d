#include "runtime/device/cpu/convolution.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "runtime/device/cpu/convolution_scratch.h"
#include "runtime/device/cpu/weight_packing.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4,avx512bf16,prefer-vector-width=512")
#include "runtime/device/cpu/convolution_tiles.h"

namespace tutti::device::cpu {
namespace {

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
void Row(const Product& p, int64_t block, const uint16_t* x, uint16_t* y, int64_t count) {
  for (int64_t at = 0; at < count; at += kMostRows) {
    const int64_t rows = std::min<int64_t>(kMostRows, count - at);
    kTiles[static_cast<size_t>(rows - 1)](p, x + at * p.step, p.weights + block * p.block,
                                          y + at * p.to_step + block * kBlock);
  }
}

// A part of the pixels that the second cache holds beside a block's weights.
constexpr int64_t kPartElements = 128 << 10;

// As many parts of at most `largest` of `count` things as give every thread the same number.
int64_t PartsOf(int64_t count, int64_t largest, int threads) {
  const int64_t parts = (count + largest - 1) / largest;
  return std::min(count, (parts + threads - 1) / threads * threads);
}

// A kernel of 1x1: `body`(first pixel, last pixel) for parts of the output's pixels.
template <typename Body>
void EachPart(const Convolution& c, int64_t depth, int threads, const Body& body) {
  const int64_t pixels = c.out_pixels(), tiles = (pixels + kMostRows - 1) / kMostRows;
  const int64_t largest = std::clamp<int64_t>(kPartElements / depth / kMostRows, 4, 72);
  const int64_t parts = PartsOf(tiles, largest, threads);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t part = 0; part < parts; ++part) {
    body(tiles * part / parts * kMostRows,
         std::min(pixels, tiles * (part + 1) / parts * kMostRows));
  }
}

void AllBlocks(const Product& p, const uint16_t* x, uint16_t* y, int64_t count) {
  for (int64_t block = 0; block < p.outputs / kBlock; ++block) Row(p, block, x, y, count);
}

Product ProductOf(int64_t depth, int64_t outputs, const uint16_t* weights) {
  return {.depth = depth,
          .outputs = outputs,
          .step = depth,
          .to_step = outputs,
          .taps = {},
          .tap_count = 1,
          .weights = weights,
          .block = depth * kBlock};
}

void ForwardOfPixels(const Convolution& c, const uint16_t* x, const uint16_t* weights, uint16_t* y,
                     int threads) {
  const Product p = ProductOf(c.inputs, c.outputs, weights);
  EachPart(c, p.depth, threads, [&](int64_t first, int64_t last) {
    static thread_local Scratch<uint16_t> scratch;
    const uint16_t* from = x + first * p.depth;
    if (c.stride > 1) {
      uint16_t* const taken = scratch.Of((last - first) * p.depth);
      for (int64_t i = first; i < last; ++i) {
        std::copy_n(x + PlaceOf(c, i), p.depth, taken + (i - first) * p.depth);
      }
      from = taken;
    }
    AllBlocks(p, from, y + first * c.outputs, last - first);
  });
}

// The gradient of output pixel `i` to the pixel that it was made of, and zeros to those beside and
// below that have none.
void Spread(const Convolution& c, int64_t i, const uint16_t* from, uint16_t* dx) {
  const int64_t column = i % c.out_width() * c.stride;
  const int64_t row = i / c.out_width() % c.out_height() * c.stride;
  uint16_t* const to = dx + PlaceOf(c, i);
  for (int64_t below = 0; below < std::min(c.stride, c.height - row); ++below) {
    for (int64_t beside = 0; beside < std::min(c.stride, c.width - column); ++beside) {
      uint16_t* const at = to + (below * c.width + beside) * c.inputs;
      if (below == 0 && beside == 0) {
        std::copy_n(from, c.inputs, at);
      } else {
        std::fill_n(at, c.inputs, uint16_t{0});
      }
    }
  }
}

void InputGradientOfPixels(const Convolution& c, const uint16_t* dy, const uint16_t* weights,
                           uint16_t* dx, int threads) {
  const Product p = ProductOf(c.outputs, c.inputs, weights);
  EachPart(c, p.depth, threads, [&](int64_t first, int64_t last) {
    static thread_local Scratch<uint16_t> scratch;
    const uint16_t* const from = dy + first * p.depth;
    if (c.stride == 1) return AllBlocks(p, from, dx + first * c.inputs, last - first);
    uint16_t* const made = scratch.Of((last - first) * c.inputs);
    AllBlocks(p, from, made, last - first);
    for (int64_t i = first; i < last; ++i) Spread(c, i, made + (i - first) * c.inputs, dx);
  });
}

// Images, with a border of zeros around each; in elements.
struct Images {
  int64_t count, height, width, border;  // `width` and `border` times the depth
  int64_t pitch() const { return width + 2 * border; }
};

// Rows of results: every so many of an image's, of the same pixels.
struct Pass {
  Product product;
  int64_t rows, columns;
  int64_t from_pitch;           // from what one row reads to what the next one does
  int64_t to_image, to, pitch;  // an image's results; the first of a row; from a row to the next
};

// Of the bordered images at `images`, the first one's results to `y`.
void MakeRows(const Pass& pass, const uint16_t* images, int64_t size, int64_t count, uint16_t* y) {
  for (int64_t block = 0; block < pass.product.outputs / kBlock; ++block) {
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t row = 0; row < pass.rows; ++row) {
        Row(pass.product, block, images + i * size + row * pass.from_pitch,
            y + i * pass.to_image + pass.to + row * pass.pitch, pass.columns);
      }
    }
  }
}

// `border` rows of zeros above and below.
void MultiplyImages(const Images& from, int64_t border, std::span<const Pass> passes,
                    const uint16_t* x, uint16_t* y, int threads) {
  const int64_t size = (from.height + 2 * border) * from.pitch();
  const int64_t largest = std::clamp<int64_t>(2 * kPartElements / size, 1, 8);
  const int64_t parts = PartsOf(from.count, largest, threads);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t part = 0; part < parts; ++part) {
    static thread_local Scratch<uint16_t> scratch;
    const int64_t first = from.count * part / parts;
    const int64_t count = from.count * (part + 1) / parts - first;
    uint16_t* const images = scratch.Of(count * size + kBlock);
    images[count * size] = 0;  // a stem's last pair reads one further
    uint16_t* to = images;
    for (int64_t i = first; i < first + count; ++i) {
      for (int64_t row = -border; row < from.height + border; ++row, to += from.pitch()) {
        const bool inside = row >= 0 && row < from.height;
        CopyBordered(inside ? x + (i * from.height + row) * from.width : nullptr, from.width,
                     from.border, to);
      }
    }
    for (const Pass& pass : passes) {
      MakeRows(pass, images, size, count, y + first * pass.to_image);
    }
  }
}

void ForwardOfImages(const Convolution& c, const uint16_t* x, const uint16_t* weights, uint16_t* y,
                     int threads) {
  const Images images = {c.images, c.height, c.width * c.inputs, c.border() * c.inputs};
  Product p = ProductOf(ForwardDepth(c), c.outputs, weights);
  p.step = c.stride * c.inputs;
  p.tap_count = ForwardTaps(c);
  p.block *= p.tap_count;
  for (int64_t tap = 0; tap < p.tap_count; ++tap) {
    p.taps[static_cast<size_t>(tap)] =
        c.is_stem() ? tap * images.pitch()
                    : tap / c.kernel * images.pitch() + tap % c.kernel * c.inputs;
  }
  const Pass pass = {.product = p,
                     .rows = c.out_height(),
                     .columns = c.out_width(),
                     .from_pitch = c.stride * images.pitch(),
                     .to_image = c.out_height() * c.out_width() * c.outputs,
                     .to = 0,
                     .pitch = c.out_width() * c.outputs};
  MultiplyImages(images, c.border(), {&pass, 1}, x, y, threads);
}

// Which gradients a pixel of x gets something of, along one side of a 3x3 kernel: by a step of 1
// the three around it; by a step of 2 one if its place is even, else two. `shift` counts from the
// pixel of the same place in the bordered image.
struct Reach {
  int tap;
  int64_t shift;
};
std::vector<Reach> ReachOf(int64_t stride, int64_t phase) {
  if (stride == 1) return {{2, 0}, {1, 1}, {0, 2}};
  if (phase == 0) return {{1, 1}};
  return {{2, 1}, {0, 2}};
}

struct Tap {
  int number;
  int64_t shift;
};
// Of the pixels whose places' remainders by the step are `row` and `column`.
std::vector<Tap> TapsOf(int64_t stride, int64_t row, int64_t column, const Images& images,
                        int64_t depth) {
  std::vector<Tap> taps;
  for (const Reach& high : ReachOf(stride, row)) {
    for (const Reach& wide : ReachOf(stride, column)) {
      taps.push_back({high.tap * 3 + wide.tap, high.shift * images.pitch() + wide.shift * depth});
    }
  }
  return taps;
}

Pass InputGradientPass(const Convolution& c, int64_t row, int64_t column, const Images& images,
                       std::span<const Tap> taps) {
  Product p = ProductOf(c.outputs, c.inputs, nullptr);
  p.to_step = c.stride * c.inputs;
  p.block *= c.kernel * c.kernel;
  p.tap_count = static_cast<int64_t>(taps.size());
  for (size_t i = 0; i < taps.size(); ++i) p.taps[i] = taps[i].shift;
  return {.product = p,
          .rows = (c.height - row + c.stride - 1) / c.stride,
          .columns = (c.width - column + c.stride - 1) / c.stride,
          .from_pitch = images.pitch(),
          .to_image = c.height * c.width * c.inputs,
          .to = (row * c.width + column) * c.inputs,
          .pitch = c.stride * c.width * c.inputs};
}

void InputGradientOfImages(const Convolution& c, const uint16_t* dy, const uint16_t* w,
                           uint16_t* dx, int threads) {
  const Images images = {c.images, c.out_height(), c.out_width() * c.outputs, c.outputs};
  std::vector<Pass> passes;
  std::vector<int> order;
  for (int64_t row = 0; row < c.stride; ++row) {
    for (int64_t column = 0; column < c.stride; ++column) {
      const auto taps = TapsOf(c.stride, row, column, images, c.outputs);
      passes.push_back(InputGradientPass(c, row, column, images, taps));
      for (const Tap& tap : taps) order.push_back(tap.number);
    }
  }
  const uint16_t* weights = PackBackward(c, order, w, threads);
  for (Pass& pass : passes) {
    pass.product.weights = weights;
    weights += pass.product.tap_count * c.outputs * kBlock;
  }
  MultiplyImages(images, 1, passes, dy, dx, threads);
}

}  // namespace

bool Takes(const Convolution& c) {
  static const bool can = __builtin_cpu_supports("avx512bf16") &&
                          __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
  if (!can || c.images < 1 || c.height < 1 || c.width < 1 || c.inputs < 1 || c.outputs < 1 ||
      c.outputs % kBlock != 0 || c.outputs > 8192 || (c.stride != 1 && c.stride != 2)) {
    return false;
  }
  if (c.is_stem()) return (c.kernel == 3 || c.kernel == 7) && c.kernel * c.inputs <= 24;
  return c.inputs % kBlock == 0 && c.inputs <= 8192 && (c.kernel == 1 || c.kernel == 3);
}

void ConvolutionForward(const Convolution& c, const uint16_t* x, const uint16_t* w, uint16_t* y,
                        int threads) {
  const uint16_t* const weights = PackForward(c, w, threads);
  if (c.kernel == 1) return ForwardOfPixels(c, x, weights, y, threads);
  ForwardOfImages(c, x, weights, y, threads);
}

void ConvolutionInputGradient(const Convolution& c, const uint16_t* dy, const uint16_t* w,
                              uint16_t* dx, int threads) {
  constexpr int kOnly[] = {0};
  if (c.kernel > 1) return InputGradientOfImages(c, dy, w, dx, threads);
  InputGradientOfPixels(c, dy, PackBackward(c, kOnly, w, threads), dx, threads);
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
