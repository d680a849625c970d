#include <algorithm>
#include <span>
#include <vector>

#include "runtime/device/cpu/bf16/convolution_kinds.h"
#include "runtime/device/cpu/bf16/convolution_scratch.h"
#include "runtime/device/cpu/bf16/weight_packing.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4,avx512bf16,prefer-vector-width=512")
#include "runtime/device/cpu/bf16/product.h"

namespace tutti::device::cpu {
namespace {

// Images, with a border of zeros around each; in elements.
struct Images {
  int64_t count, height, width, border;  // `width` and `border` times the depth
  int64_t pitch() const { return width + 2 * border; }
};

// Results, in lines that are rows of an image: every so many of its rows, of the same pixels.
struct Pass {
  Product product;
  Lines lines;
  int64_t to_image, to;  // an image's results; the first of a row
};

// Makes the results of `count` bordered images, which lie `size` elements apart from `images` on;
// those of the first image go to `y`.
void MakeRows(const Pass& pass, const uint16_t* images, int64_t size, int64_t count, uint16_t* y) {
  AmxTiles tiles;
  AmxTiles* const amx = AmxTakes(pass.product) ? &tiles : nullptr;
  for (int64_t block = 0; block < pass.product.blocks(); ++block) {
    for (int64_t i = 0; i < count; ++i) {
      Multiply(pass.product, amx, pass.lines, block, images + i * size,
               y + i * pass.to_image + pass.to);
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
// Returns the taps that reach the pixels whose row and column leave these remainders by the step.
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
          .lines = {.lines = (c.height - row + c.stride - 1) / c.stride,
                    .count = (c.width - column + c.stride - 1) / c.stride,
                    .from_pitch = images.pitch(),
                    .to_pitch = c.stride * c.width * c.inputs},
          .to_image = c.height * c.width * c.inputs,
          .to = (row * c.width + column) * c.inputs};
}

}  // namespace

void ForwardOfImages(const Convolution& c, const uint16_t* x, const uint16_t* w, uint16_t* y,
                     int threads) {
  const Images images = {c.images, c.height, c.width * c.inputs, c.border() * c.inputs};
  Product p = ProductOf(ForwardDepth(c), c.outputs, PackForward(c, w, threads));
  p.step = c.stride * c.inputs;
  p.tap_count = ForwardTaps(c);
  p.block *= p.tap_count;
  for (int64_t tap = 0; tap < p.tap_count; ++tap) {
    p.taps[static_cast<size_t>(tap)] =
        c.is_stem() ? tap * images.pitch()
                    : tap / c.kernel * images.pitch() + tap % c.kernel * c.inputs;
  }
  const Pass pass = {.product = p,
                     .lines = {.lines = c.out_height(),
                               .count = c.out_width(),
                               .from_pitch = c.stride * images.pitch(),
                               .to_pitch = c.out_width() * c.outputs},
                     .to_image = c.out_height() * c.out_width() * c.outputs,
                     .to = 0};
  MultiplyImages(images, c.border(), {&pass, 1}, x, y, threads);
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
    weights += pass.product.tap_count * c.outputs * BlockOf(c.inputs);
  }
  MultiplyImages(images, 1, passes, dy, dx, threads);
}

}  // namespace tutti::device::cpu
#pragma GCC pop_options
#endif
