// 3x3 kernels by a step of 1, by Winograd's F(4x4, 3x3).
#include <algorithm>
#include <array>

#include "runtime/device/cpu/bf16/convolution_scratch.h"
#include "runtime/device/cpu/bf16/kept_weights.h"
#include "runtime/device/cpu/fp32/convolution_fp32.h"
#include "runtime/device/cpu/fp32/packing.h"
#include "runtime/device/cpu/fp32/patches.h"

namespace tutti::device::cpu::fp32 {
namespace {

// The floats of a part that the second cache holds: its transformed patches and their products. But
// a part has at least so many patches as make it worth to read the weights of many channels.
constexpr int64_t kPartFloats = 160 << 10, kFewestPatches = 48;

// Places of a part's patches [place][patch][depth], of their products and of the weights.
struct Places {
  int64_t patches, products, weights;
};

void TransformPatches(const Kernels& kernels, const Plane& plane, const float* x, int64_t first,
                      int64_t count, int64_t place, float* to) {
  for (int64_t i = 0; i < count; ++i, to += plane.depth) {
    const auto pixels = InputPixels(plane, first + i, x);
    kernels.transform_input(pixels.data(), plane.depth, to, {place, kPanel});
  }
}

void TransformProducts(const Kernels& kernels, const Plane& plane, const float* products,
                       int64_t first, int64_t count, int64_t place, float* y) {
  for (int64_t i = 0; i < count; ++i, products += plane.results) {
    const auto pixels = ResultPixels(plane, first + i, y);
    kernels.transform_output(products, place, plane.results, pixels.data());
  }
}

void MultiplyPlaces(const Kernels& kernels, const Plane& plane, int64_t count, const Places& places,
                    const float* patches, const float* weights, float* products) {
  const int64_t width = BlockOf(kernels, plane.results);
  for (int64_t place = 0; place < kPlaces; ++place) {
    EachPiece(plane.depth, plane.results, width,
              [&](int64_t block, int64_t begin, int64_t depth, int64_t at_weights) {
                const Product p = {depth, plane.depth, plane.results, width, begin > 0};
                kernels.multiply(p, count, patches + place * places.patches + begin,
                                 weights + place * places.weights + at_weights,
                                 products + place * places.products + block * width);
              });
  }
}

int64_t WeightsOfPlace(const Plane& plane) { return plane.depth * plane.results + kApart; }

// Makes the weights of patches, [place][block][depth][width], of `packed` as packing.h has it:
// [block][tap][depth][width], taps in the order of their pixels.
void TransformWeights(const Kernels& kernels, const Plane& plane, const float* packed,
                      float* weights, int threads) {
  const int64_t width = BlockOf(kernels, plane.results), block = plane.depth * width;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < plane.results / width; ++i) {
    kernels.transform_kernel(packed + i * 9 * block, block, block, weights + i * block,
                             WeightsOfPlace(plane));
  }
}

void MultiplyPatches(const Kernels& kernels, const Plane& plane, const float* x,
                     const float* weights, float* y, int threads) {
  const int64_t of_patch = kPlaces * (plane.depth + plane.results);
  const int64_t largest = std::max(kFewestPatches, kPartFloats / of_patch);
  const int64_t fewest = (plane.patches() + largest - 1) / largest;
  const int64_t parts = std::min(plane.patches(), (fewest + threads - 1) / threads * threads);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t part = 0; part < parts; ++part) {
    static thread_local Scratch<float> patch_scratch, product_scratch;
    const int64_t first = plane.patches() * part / parts;
    const int64_t count = plane.patches() * (part + 1) / parts - first;
    const Places places = {count * plane.depth + kApart, count * plane.results + kApart,
                           WeightsOfPlace(plane)};
    float* const patches = patch_scratch.Of(kPlaces * places.patches);
    float* const products = product_scratch.Of(kPlaces * places.products);
    TransformPatches(kernels, plane, x, first, count, places.patches, patches);
    MultiplyPlaces(kernels, plane, count, places, patches, weights, products);
    TransformProducts(kernels, plane, products, first, count, places.products, y);
  }
}

float* PackedScratch(const Convolution& c) {
  static thread_local Scratch<float> scratch;
  return scratch.Of(9 * c.inputs * c.outputs);
}

}  // namespace

void WinogradForward(const Convolution& c, const float* x, const float* w, float* y, int threads) {
  const Kernels& kernels = *Best();
  const Plane plane = {c.images, c.height, c.width, c.inputs, c.outputs};
  static thread_local Scratch<float> scratch;
  const float* const weights =
      KeptWeights::Of(w, kPatches, kPlaces * WeightsOfPlace(plane), scratch, [&](float* to) {
        float* const packed = PackedScratch(c);
        PackForward(kernels, c, w, packed, threads);
        TransformWeights(kernels, plane, packed, to, threads);
      });
  MultiplyPatches(kernels, plane, x, weights, y, threads);
}

void WinogradInputGradient(const Convolution& c, const float* dy, const float* w, float* dx,
                           int threads) {
  const Kernels& kernels = *Best();
  const Plane plane = {c.images, c.height, c.width, c.outputs, c.inputs};
  static thread_local Scratch<float> scratch;
  float* const packed = PackedScratch(c);
  float* const weights = scratch.Of(kPlaces * WeightsOfPlace(plane));
  PackInputGradient(kernels, c, InputGradientWindow(c, 0, 0), w, packed, threads);
  TransformWeights(kernels, plane, packed, weights, threads);
  MultiplyPatches(kernels, plane, dy, weights, dx, threads);
}

}  // namespace tutti::device::cpu::fp32
