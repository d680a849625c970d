// The weights' gradient of 3x3 kernels by a step of 1: dw = G^T (sum over patches of B^T d B times
// A dy A^T) G. Patches come in chunks that are transformed, then multiplied (sharing.h).
#include <algorithm>

#include "runtime/device/cpu/bf16/convolution_scratch.h"
#include "runtime/device/cpu/fp32/convolution_fp32.h"
#include "runtime/device/cpu/fp32/packing.h"
#include "runtime/device/cpu/fp32/patches.h"
#include "runtime/device/cpu/fp32/sharing.h"

namespace tutti::device::cpu::fp32 {
namespace {

// The floats of a chunk that threads share, and of one that a thread works on alone, near to it in
// its caches; and the patches of a strip, which the first cache holds in two panels.
constexpr int64_t kSharedFloats = 1 << 20, kOwnFloats = 160 << 10, kStripPatches = 192;
constexpr int64_t kFewestShared = 128, kFewestOwn = 64;

// A chunk's patches as panels [place][channels / 16][patch][16].
struct Layout {
  Layout(const Plane& plane, int64_t patches)
      : count(patches),
        panel(count * kPanel + kApart),
        x_place(plane.depth / kPanel * panel + kApart),
        dy_place(plane.results / kPanel * panel + kApart) {}
  int64_t count, panel, x_place, dy_place;  // all but `count` in floats from one to the next
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

// Chunks of patches [first, last) of a plane, one after the other in the same memory, which belongs
// to the thread that makes the object.
class Chunks {
 public:
  Chunks(const Plane& plane, const Range& patches, int64_t largest)
      : plane_(plane), patches_(patches), count_((patches.size() + largest - 1) / largest) {
    static thread_local Scratch<float> x_scratch, dy_scratch;
    const Layout layout(plane, (patches.size() + count_ - 1) / std::max<int64_t>(count_, 1));
    x_ = x_scratch.Of(kPlaces * layout.x_place);
    dy_ = dy_scratch.Of(kPlaces * layout.dy_place);
  }
  int64_t count() const { return count_; }
  Range PatchesOf(int64_t chunk) const { return patches_.Part(chunk, count_); }
  int64_t products() const { return kPlaces * (plane_.results / kPanel); }

  void Transform(const Kernels& kernels, int64_t chunk, int64_t i, const float* x,
                 const float* dy) const {
    const Range patches = PatchesOf(chunk);
    const Layout l(plane_, patches.size());
    const auto from = InputPixels(plane_, patches.first + i, x);
    kernels.transform_input(from.data(), plane_.depth, x_ + i * kPanel, {l.x_place, l.panel});
    const auto gradients = GradientPixels(plane_, patches.first + i, dy);
    kernels.transform_gradient(gradients.data(), plane_.results, dy_ + i * kPanel,
                               {l.dy_place, l.panel});
  }

  // Product `item` of the chunk, added to `sums` [place][output][input], or put there by the first.
  void Multiply(const Kernels& kernels, int64_t chunk, int64_t item, float* sums,
                int64_t of_place) const {
    const Layout l(plane_, PatchesOf(chunk).size());
    const int64_t panels = plane_.results / kPanel, place = item / panels, output = item % panels;
    AddPanel(kernels, plane_, l, x_ + place * l.x_place,
             dy_ + place * l.dy_place + output * l.panel,
             sums + place * of_place + output * kPanel * plane_.depth, chunk > 0);
  }

 private:
  const Plane& plane_;
  const Range patches_;
  const int64_t count_;
  float *x_ = nullptr, *dy_ = nullptr;
};

}  // namespace

void WinogradWeightGradient(const Convolution& c, const float* x, const float* dy, float* dw,
                            int threads) {
  static thread_local Scratch<float> sum_scratch;
  const Kernels& kernels = *Best();
  const Plane plane = {c.images, c.height, c.width, c.inputs, c.outputs};
  const Range all = {0, plane.patches()};
  const int64_t of_patch = kPlaces * (plane.depth + plane.results);
  const int64_t of_place = plane.depth * plane.results + kApart;
  const bool has_own = HasOwnSums(all, of_patch, kPlaces * c.inputs * c.outputs, threads);
  const int parts = has_own ? threads : 1;
  float* const sums = sum_scratch.Of(parts * kPlaces * of_place);
  if (has_own) {
    const int64_t largest = std::max(kFewestOwn, kOwnFloats / of_patch);
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int part = 0; part < parts; ++part) {
      const Chunks chunks(plane, all.Part(part, parts), largest);
      float* const own = sums + part * kPlaces * of_place;
      for (int64_t chunk = 0; chunk < chunks.count(); ++chunk) {
        const int64_t count = chunks.PatchesOf(chunk).size();
        for (int64_t i = 0; i < count; ++i) chunks.Transform(kernels, chunk, i, x, dy);
        for (int64_t item = 0; item < chunks.products(); ++item) {
          chunks.Multiply(kernels, chunk, item, own, of_place);
        }
      }
    }
  } else {
    const Chunks chunks(plane, all, std::max(kFewestShared, kSharedFloats / of_patch));
    for (int64_t chunk = 0; chunk < chunks.count(); ++chunk) {
      const int64_t count = chunks.PatchesOf(chunk).size();
#pragma omp parallel num_threads(threads)
      {
#pragma omp for schedule(static)
        for (int64_t i = 0; i < count; ++i) chunks.Transform(kernels, chunk, i, x, dy);
#pragma omp for schedule(static)
        for (int64_t item = 0; item < chunks.products(); ++item) {
          chunks.Multiply(kernels, chunk, item, sums, of_place);
        }
      }
    }
  }
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t output = 0; output < plane.results; ++output) {
    float* const from = sums + output * plane.depth;
    for (int64_t place = 0; place < kPlaces; ++place) {
      AddParts(from + place * of_place, plane.depth, kPlaces * of_place, parts);
    }
    kernels.transform_kernel_gradient(from, of_place, plane.depth, dw + output * 9 * plane.depth,
                                      plane.depth);
  }
}

}  // namespace tutti::device::cpu::fp32
