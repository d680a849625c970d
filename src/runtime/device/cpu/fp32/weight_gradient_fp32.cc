// dw = sum over pixels of dy times the pixel of x that a tap sees. Pixels come in chunks that all
// threads lay out by panels of 16 channels, then share the products of: no thread has sums of its
// own.
#include <algorithm>

#include "runtime/device/cpu/bf16/convolution_scratch.h"
#include "runtime/device/cpu/fp32/convolution_fp32.h"
#include "runtime/device/cpu/fp32/kernels.h"
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
    const int64_t of_pixel = taps * inputs + outputs;
    chunk = std::min(pixels, std::max(kFewestPixels, kChunkFloats / of_pixel));
    pitch = chunk * kPanel + kApart;
  }
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
  const int64_t of_tap = l.inputs / kPanel * l.pitch;
  if (l.taps == 1) {  // a kernel of 1x1, whose windows are pixels as they lie
    return StorePanels(PixelAt(l.window, x, place), l.values, l.pitch, to + i * kPanel);
  }
  for (int64_t high = 0; high < l.window.tall.size(); ++high) {
    GatherRow(l.window, x, place, high, row);
    for (int64_t column = 0; column < l.columns; ++column) {
      StorePanels(row + column * l.values, l.values, l.pitch,
                  to + (high * l.columns + column) * of_tap + i * kPanel);
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

}  // namespace

void DirectWeightGradient(const Convolution& c, const float* x, const float* dy, float* dw,
                          int threads) {
  static thread_local Scratch<float> x_scratch, dy_scratch, sum_scratch;
  const Kernels& kernels = *Best();
  const Layout l(kernels, c);
  const int64_t of_tap = l.inputs / kPanel * l.pitch, panels = l.outputs / kPanel;
  float* const at_x = x_scratch.Of(l.taps * of_tap);
  float* const at_dy = dy_scratch.Of(panels * l.pitch);
  const bool padded = l.inputs != l.values;
  float* const sums = padded ? sum_scratch.Of(l.outputs * l.taps * l.inputs) : dw;
  for (int64_t first = 0; first < l.pixels; first += l.chunk) {
    const int64_t count = std::min(l.chunk, l.pixels - first);
#pragma omp parallel num_threads(threads)
    {
      static thread_local Scratch<float> row_scratch;
      float* const row = row_scratch.Of(l.window.wide.size() * l.window.depth);
#pragma omp for schedule(static)
      for (int64_t i = 0; i < count; ++i) {
        LayOut(l, x, first + i, i, row, at_x);
        StorePanels(dy + (first + i) * l.outputs, l.outputs, l.pitch, at_dy + i * kPanel);
      }
#pragma omp for schedule(static)
      for (int64_t item = 0; item < l.taps * panels; ++item) {
        const int64_t tap = item / panels, panel = item % panels;
        AddPanel(kernels, l, at_x + tap * of_tap, at_dy + panel * l.pitch, count,
                 sums + (panel * kPanel * l.taps + tap) * l.inputs, first > 0);
      }
    }
  }
  if (!padded) return;
  for (int64_t row = 0; row < l.outputs * l.taps; ++row) {
    std::copy_n(sums + row * l.inputs, l.values, dw + row * l.values);
  }
}

}  // namespace tutti::device::cpu::fp32
