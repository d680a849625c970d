#include "runtime/device/cpu/fp32/convolution_fp32.h"

#include <algorithm>
#include <atomic>

#include "runtime/device/cpu/bf16/convolution_scratch.h"
#include "runtime/device/cpu/bf16/kept_weights.h"
#include "runtime/device/cpu/fp32/packing.h"

namespace tutti::device::cpu::fp32 {
namespace {

// Windows of a part that the second cache holds, and results of as many.
constexpr int64_t kPartFloats = 48 << 10, kFewestResults = 24, kMostResults = 512;
constexpr int64_t kFewestPatches = 16;

std::atomic<bool> use_patches = true;

// Where results go: so many floats from one to the next, by image, row and column.
struct Target {
  float* y;
  int64_t image, row, column;
  float* At(const ResultPlace& place) const {
    return y + place.image * image + place.row * row + place.column * column;
  }
};

// Results [first, last), whose windows lie in `x`, `step` apart.
struct Part {
  int64_t first, last;
  const float* x;
  int64_t step;
};

// By blocks of weights [block][depth][width], a few of the depth at a time.
void MultiplyPart(const Kernels& kernels, const Window& w, const Part& part, const float* weights,
                  int64_t results, const Target& target) {
  const int64_t depth = w.values(), width = BlockOf(kernels, results);
  // One line where results follow each other, else one for each row of an image.
  const bool whole = target.row == w.columns * target.column && target.image == w.rows * target.row;
  EachPiece(depth, results, width,
            [&](int64_t block, int64_t begin, int64_t count, int64_t at_weights) {
              const Product p = {count, part.step, target.column, width, begin > 0};
              for (int64_t at = part.first; at < part.last;) {
                const int64_t next =
                    whole ? part.last : std::min(part.last, (at / w.columns + 1) * w.columns);
                kernels.multiply(p, next - at, part.x + (at - part.first) * part.step + begin,
                                 weights + at_weights, target.At(PlaceOf(w, at)) + block * width);
                at = next;
              }
            });
}

void MultiplyWindows(const Kernels& kernels, const Window& w, const float* source,
                     const float* weights, int64_t results, const Target& target, int threads) {
  const int64_t count = w.results(), depth = w.values();
  const int64_t largest = std::clamp(kPartFloats / depth, kFewestResults, kMostResults);
  const int64_t fewest = (count + largest - 1) / largest;
  const int64_t parts = std::min(count, (fewest + threads - 1) / threads * threads);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < parts; ++i) {
    static thread_local Scratch<float> scratch;
    Part part = {count * i / parts, count * (i + 1) / parts, nullptr, depth};
    if (w.is_source()) {
      part.x = source + part.first * depth;
    } else {
      float* to = scratch.Of((part.last - part.first) * depth);
      part.x = to;
      for (int64_t at = part.first; at < part.last; ++at) {
        const ResultPlace place = PlaceOf(w, at);
        for (int64_t row = 0; row < w.tall.size(); ++row, to += w.wide.size() * w.depth) {
          GatherRow(w, source, place, row, to);
        }
      }
    }
    MultiplyPart(kernels, w, part, weights, results, target);
  }
}

// Pixels that no result was made of.
void Clear(const Window& w, int64_t channels, const Target& target) {
  for (int64_t i = 0; i < w.results(); ++i) {
    std::fill_n(target.At(PlaceOf(w, i)), channels, 0.0f);
  }
}

}  // namespace

bool CanCompute(const Convolution& c) {
  return Best() != nullptr && c.images >= 1 && c.height >= 1 && c.width >= 1 && c.outputs >= 16 &&
         c.outputs % 16 == 0 && c.outputs <= 8192 && (c.stride == 1 || c.stride == 2) &&
         c.kernel % 2 == 1 && c.kernel <= 7 &&
         (c.is_stem() ? c.inputs >= 1 : c.inputs % 16 == 0 && c.inputs <= 8192);
}

void UsePatches(bool use) { use_patches = use; }

bool GoesByPatches(const Convolution& c) {
  if (!use_patches || c.is_stem() || c.kernel != 3 || c.stride != 1) return false;
  // Patches that hang over an image's end cost as much as others, and weights are transformed
  // however few there are.
  const int64_t of_image = (c.height + 3) / 4 * ((c.width + 3) / 4);
  return 16 * of_image <= 2 * c.height * c.width && c.images * of_image >= kFewestPatches;
}

void Forward(const Convolution& c, const float* x, const float* w, float* y, int threads) {
  if (GoesByPatches(c)) return WinogradForward(c, x, w, y, threads);
  const Kernels& kernels = *Best();
  const Window window = ForwardWindow(c);
  static thread_local Scratch<float> scratch;
  const float* const weights =
      KeptWeights::Of(w, kWindows, c.outputs * window.values(), scratch,
                      [&](float* to) { PackForward(kernels, c, w, to, threads); });
  MultiplyWindows(
      kernels, window, x, weights, c.outputs,
      {y, c.out_height() * c.out_width() * c.outputs, c.out_width() * c.outputs, c.outputs},
      threads);
}

void InputGradient(const Convolution& c, const float* dy, const float* w, float* dx, int threads) {
  if (GoesByPatches(c)) return WinogradInputGradient(c, dy, w, dx, threads);
  const Kernels& kernels = *Best();
  for (int64_t row = 0; row < std::min(c.stride, c.height); ++row) {
    for (int64_t column = 0; column < std::min(c.stride, c.width); ++column) {
      const Window window = InputGradientWindow(c, row, column);
      const Target target = {dx + (row * c.width + column) * c.inputs,
                             c.height * c.width * c.inputs, c.stride * c.width * c.inputs,
                             c.stride * c.inputs};
      if (window.values() == 0) {
        Clear(window, c.inputs, target);
        continue;
      }
      static thread_local Scratch<float> scratch;
      float* const weights = scratch.Of(c.inputs * window.values());
      PackInputGradient(kernels, c, window, w, weights, threads);
      MultiplyWindows(kernels, window, dy, weights, c.inputs, target, threads);
    }
  }
}

void WeightGradient(const Convolution& c, const float* x, const float* dy, float* dw, int threads) {
  if (GoesByPatches(c)) return WinogradWeightGradient(c, x, dy, dw, threads);
  DirectWeightGradient(c, x, dy, dw, threads);
}

}  // namespace tutti::device::cpu::fp32
