// dw = sum over pixels of dy times the pixel of x that a tap sees. Pixels come in chunks that are
// laid out by panels of 16 channels, then multiplied (sharing.h).
#include <algorithm>

#include "runtime/device/cpu/bf16/convolution_scratch.h"
#include "runtime/device/cpu/fp32/convolution_fp32.h"
#include "runtime/device/cpu/fp32/kernels.h"
#include "runtime/device/cpu/fp32/sharing.h"
#include "runtime/device/cpu/fp32/window.h"

namespace tutti::device::cpu::fp32 {
namespace {

// Pixels of a chunk, laid out, and of a strip of it that the first cache holds in two panels.
constexpr int64_t kChunkFloats = 128 << 10, kFewestPixels = 192, kStripPixels = 192;
// Between panels, which else lie a multiple of 4 KiB apart and meet in one set of a cache.
constexpr int64_t kApart = 16;

struct Layout {
  Layout(const Kernels& kernels, const Convolution& c)
      : window(ForwardWindow(c)), pixels(c.out_pixels()), outputs(c.outputs) {
    // If an image has few channels, a row of the kernel is taken for one pixel.
    columns = c.is_stem() ? 1 : c.kernel;
    taps = c.kernel * columns;
    values = c.kernel / columns * c.inputs;
    const int64_t panels_needed = (values + kPanel - 1) / kPanel;
    width = (panels_needed * kPanel) % kernels.block == 0 ? kernels.block : kPanel;
    inputs = panels_needed * kPanel;
    chunk = std::min(pixels, std::max(kFewestPixels, kChunkFloats / of_pixel()));
    pitch = chunk * kPanel + kApart;
  }
  int64_t of_pixel() const { return taps * inputs + outputs; }
  int64_t of_tap() const { return inputs / kPanel * pitch; }
  int64_t panels() const { return outputs / kPanel; }
  int64_t products() const { return taps * panels(); }
  int64_t sums() const { return taps * inputs * outputs; }
  Window window;
  int64_t pixels, outputs;
  int64_t columns, taps, values;  // `values` of x at a tap, padded to
  int64_t inputs, width;          // these, in blocks of so many
  int64_t chunk, pitch;           // pixels, and floats from one panel to the next
};

void StorePanels(const float* from, int64_t values, int64_t pitch, float* to) {
  for (; values >= kPanel; values -= kPanel, from += kPanel, to += pitch) {
    std::copy_n(from, kPanel, to);
  }
  if (values > 0) std::fill(std::copy_n(from, values, to), to + kPanel, 0.0f);
}

// Pixel `pixel`, the chunk's `i`th: of x [tap][inputs / 16][i][16].
void LayOut(const Layout& l, const float* x, int64_t pixel, int64_t i, float* row, float* to) {
  const ResultPlace place = PlaceOf(l.window, pixel);
  if (l.taps == 1) {  // a kernel of 1x1, whose windows are pixels as they lie
    return StorePanels(PixelAt(l.window, x, place), l.values, l.pitch, to + i * kPanel);
  }
  for (int64_t high = 0; high < l.window.tall.size(); ++high) {
    GatherRow(l.window, x, place, high, row);
    for (int64_t column = 0; column < l.columns; ++column) {
      StorePanels(row + column * l.values, l.values, l.pitch,
                  to + (high * l.columns + column) * l.of_tap() + i * kPanel);
    }
  }
}

// A tap's sums of 16 outputs, [16][inputs] from `sums`, of `count` pixels.
void AddPanel(const Kernels& kernels, const Layout& l, const float* x, const float* dy,
              int64_t count, float* sums, bool add) {
  for (int64_t first = 0; first < count; first += kStripPixels) {
    const int64_t strip = std::min(kStripPixels, count - first);
    for (int64_t input = 0; input < l.inputs; input += l.width) {
      kernels.add_outer(dy + first * kPanel, x + input / kPanel * l.pitch + first * kPanel, l.pitch,
                        strip, l.width, sums + input, l.taps * l.inputs, add || first > 0);
    }
  }
}

// Chunks of pixels, one after the other in the same memory, which belongs to the thread that makes
// the object.
class Chunks {
 public:
  Chunks(const Layout& layout, const Range& pixels) : l_(layout), pixels_(pixels) {
    static thread_local Scratch<float> x_scratch, dy_scratch;
    x_ = x_scratch.Of(l_.taps * l_.of_tap());
    dy_ = dy_scratch.Of(l_.panels() * l_.pitch);
  }
  int64_t count() const { return (pixels_.size() + l_.chunk - 1) / l_.chunk; }
  Range PixelsOf(int64_t chunk) const {
    const int64_t first = pixels_.first + chunk * l_.chunk;
    return {first, std::min(pixels_.last, first + l_.chunk)};
  }

  void LayOut(int64_t chunk, int64_t i, const float* x, const float* dy) const {
    static thread_local Scratch<float> row_scratch;
    float* const row = row_scratch.Of(l_.window.wide.size() * l_.window.depth);
    const int64_t pixel = PixelsOf(chunk).first + i;
    fp32::LayOut(l_, x, pixel, i, row, x_);
    StorePanels(dy + pixel * l_.outputs, l_.outputs, l_.pitch, dy_ + i * kPanel);
  }

  // Product `item` of the chunk, added to `sums` [output][tap][input], or put there by the first.
  void Multiply(const Kernels& kernels, int64_t chunk, int64_t item, float* sums) const {
    const int64_t tap = item / l_.panels(), panel = item % l_.panels();
    AddPanel(kernels, l_, x_ + tap * l_.of_tap(), dy_ + panel * l_.pitch, PixelsOf(chunk).size(),
             sums + (panel * kPanel * l_.taps + tap) * l_.inputs, chunk > 0);
  }

 private:
  const Layout& l_;
  const Range pixels_;
  float *x_ = nullptr, *dy_ = nullptr;
};

}  // namespace

void DirectWeightGradient(const Convolution& c, const float* x, const float* dy, float* dw,
                          int threads) {
  static thread_local Scratch<float> sum_scratch;
  const Kernels& kernels = *Best();
  const Layout l(kernels, c);
  const Range all = {0, l.pixels};
  const bool has_own = HasOwnSums(all, l.of_pixel(), l.sums(), threads);
  const int parts = has_own ? threads : 1;
  const bool in_place = parts == 1 && l.inputs == l.values;
  float* const sums = in_place ? dw : sum_scratch.Of(parts * l.sums());
  if (has_own) {
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int part = 0; part < parts; ++part) {
      const Chunks chunks(l, all.Part(part, parts));
      for (int64_t chunk = 0; chunk < chunks.count(); ++chunk) {
        const int64_t count = chunks.PixelsOf(chunk).size();
        for (int64_t i = 0; i < count; ++i) chunks.LayOut(chunk, i, x, dy);
        for (int64_t item = 0; item < l.products(); ++item) {
          chunks.Multiply(kernels, chunk, item, sums + part * l.sums());
        }
      }
    }
  } else {
    const Chunks chunks(l, all);
    for (int64_t chunk = 0; chunk < chunks.count(); ++chunk) {
      const int64_t count = chunks.PixelsOf(chunk).size();
#pragma omp parallel num_threads(threads)
      {
#pragma omp for schedule(static)
        for (int64_t i = 0; i < count; ++i) chunks.LayOut(chunk, i, x, dy);
#pragma omp for schedule(static)
        for (int64_t item = 0; item < l.products(); ++item) {
          chunks.Multiply(kernels, chunk, item, sums);
        }
      }
    }
  }
  if (in_place) return;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t row = 0; row < l.outputs * l.taps; ++row) {
    AddParts(sums + row * l.inputs, l.values, l.sums(), parts);
    std::copy_n(sums + row * l.inputs, l.values, dw + row * l.values);
  }
}

}  // namespace tutti::device::cpu::fp32
