// The weights' gradient of 3x3 kernels by a step of 1: dw = G^T (sum over patches of B^T d B times
// A dy A^T) G. Patches come in chunks that all threads transform, then share the products of.
#include <algorithm>

#include "runtime/device/cpu/bf16/convolution_scratch.h"
#include "runtime/device/cpu/fp32/convolution_fp32.h"
#include "runtime/device/cpu/fp32/packing.h"
#include "runtime/device/cpu/fp32/patches.h"

namespace tutti::device::cpu::fp32 {
namespace {

// Patches of a chunk, and of a strip of it that the first cache holds in two panels.
constexpr int64_t kChunkFloats = 1 << 20, kFewestPatches = 128, kStripPatches = 192;

// A chunk's patches as panels [place][channels / 16][patch][16].
struct Layout {
  int64_t count, panel, x_place, dy_place;  // in floats from one to the next
};

// A place's sums of 16 outputs, [16][inputs] from `sums`.
void AddPanel(const Kernels& kernels, const Plane& plane, const Layout& l, const float* x,
              const float* dy, float* sums, bool add) {
  const int64_t width = BlockOf(kernels, plane.depth);
  for (int64_t first = 0; first < l.count; first += kStripPatches) {
    const int64_t strip = std::min(kStripPatches, l.count - first);
    for (int64_t input = 0; input < plane.depth; input += width) {
      kernels.add_outer(dy + first * kPanel, x + input / kPanel * l.panel + first * kPanel, l.panel,
                        strip, width, sums + input, plane.depth, add || first > 0);
    }
  }
}

}  // namespace

void WinogradWeightGradient(const Convolution& c, const float* x, const float* dy, float* dw,
                            int threads) {
  static thread_local Scratch<float> x_scratch, dy_scratch, sum_scratch;
  const Kernels& kernels = *Best();
  const Plane plane = {c.images, c.height, c.width, c.inputs, c.outputs};
  const int64_t largest =
      std::max(kFewestPatches, kChunkFloats / (kPlaces * (plane.depth + plane.results)));
  const int64_t chunks = (plane.patches() + largest - 1) / largest;
  const int64_t panels = plane.results / kPanel, of_place = plane.depth * plane.results + kApart;
  float* const sums = sum_scratch.Of(kPlaces * of_place);
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    const int64_t begin = plane.patches() * chunk / chunks;
    const int64_t count = plane.patches() * (chunk + 1) / chunks - begin;
    const int64_t panel = count * kPanel + kApart;
    const Layout l = {count, panel, plane.depth / kPanel * panel + kApart, panels * panel + kApart};
    float* const at_x = x_scratch.Of(kPlaces * l.x_place);
    float* const at_dy = dy_scratch.Of(kPlaces * l.dy_place);
#pragma omp parallel num_threads(threads)
    {
#pragma omp for schedule(static)
      for (int64_t i = 0; i < count; ++i) {
        const auto from = InputPixels(plane, begin + i, x);
        kernels.transform_input(from.data(), plane.depth, at_x + i * kPanel, {l.x_place, panel});
        const auto gradients = GradientPixels(plane, begin + i, dy);
        kernels.transform_gradient(gradients.data(), plane.results, at_dy + i * kPanel,
                                   {l.dy_place, panel});
      }
#pragma omp for schedule(static)
      for (int64_t item = 0; item < kPlaces * panels; ++item) {
        const int64_t place = item / panels, output = item % panels;
        AddPanel(kernels, plane, l, at_x + place * l.x_place,
                 at_dy + place * l.dy_place + output * panel,
                 sums + place * of_place + output * kPanel * plane.depth, chunk > 0);
      }
    }
  }
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t output = 0; output < plane.results; ++output) {
    kernels.transform_kernel_gradient(sums + output * plane.depth, of_place, plane.depth,
                                      dw + output * 9 * plane.depth, plane.depth);
  }
}

}  // namespace tutti::device::cpu::fp32
