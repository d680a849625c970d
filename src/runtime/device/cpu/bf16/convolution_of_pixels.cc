#include <algorithm>

#include "runtime/device/cpu/bf16/convolution_kinds.h"
#include "runtime/device/cpu/bf16/convolution_scratch.h"
#include "runtime/device/cpu/bf16/weight_packing.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4,avx512bf16,prefer-vector-width=512")
#include "runtime/device/cpu/bf16/product.h"

namespace tutti::device::cpu {
namespace {

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

// `next`: the pixels behind x's that are read next.
void AllBlocks(const Product& p, const uint16_t* x, uint16_t* y, int64_t count, int64_t next) {
  AmxTiles tiles;
  AmxTiles* const amx = AmxTakes(p) ? &tiles : nullptr;
  Prefetch prefetch(x + count * p.depth, x + (count + next) * p.depth,
                    p.blocks() * TilesOfLine(p, count));
  for (int64_t block = 0; block < p.blocks(); ++block) {
    Multiply(p, amx, {.lines = 1, .count = count}, block, x, y, &prefetch);
  }
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

}  // namespace

void ForwardOfPixels(const Convolution& c, const uint16_t* x, const uint16_t* w, uint16_t* y,
                     int threads) {
  const Product p = ProductOf(c.inputs, c.outputs, PackForward(c, w, threads));
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
    const int64_t behind = c.stride > 1 ? 0 : std::min(last - first, c.out_pixels() - last);
    AllBlocks(p, from, y + first * c.outputs, last - first, behind);
  });
}

void InputGradientOfPixels(const Convolution& c, const uint16_t* dy, const uint16_t* w,
                           uint16_t* dx, int threads) {
  constexpr int kOnly[] = {0};
  const Product p = ProductOf(c.outputs, c.inputs, PackBackward(c, kOnly, w, threads));
  EachPart(c, p.depth, threads, [&](int64_t first, int64_t last) {
    static thread_local Scratch<uint16_t> scratch;
    const uint16_t* const from = dy + first * p.depth;
    const int64_t behind = std::min(last - first, c.out_pixels() - last);
    if (c.stride == 1) return AllBlocks(p, from, dx + first * c.inputs, last - first, behind);
    uint16_t* const made = scratch.Of((last - first) * c.inputs);
    AllBlocks(p, from, made, last - first, behind);
    for (int64_t i = first; i < last; ++i) Spread(c, i, made + (i - first) * c.inputs, dx);
  });
}

}  // namespace tutti::device::cpu
#pragma GCC pop_options
#endif
