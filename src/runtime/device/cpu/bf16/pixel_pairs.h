// Lays activations out as the weights' gradient reads them: by pairs of neighbouring pixels of the
// output, in panels of 16 channels. Included by the weights' gradients alone, below their pragma.
//
// The output's rows come in bands. A band's gradients are [row][pair]; x has the rows that they
// reach, in as many layouts as a row of the kernel needs to find its pairs in one word:
//
//   column of x       -1  0  1  2  3  4          of five pixels and the borders beside them
//   dy                   (0  1)(2  3)(4  .)
//   by a step of 1:
//     layout 0           (0  1)(2  3)(4  .)      for the middle of a kernel's row
//     layout 1       (-1  0)(1  2)(3  4)(. .)    for its ends: the right one is a pair further
//   by a step of 2, layouts -1, 0 and 1: columns 2j - 1, 2j and 2j + 1, two of each in a word
#pragma once

#include "runtime/device/cpu/bf16/convolution_scratch.h"
#include "runtime/device/cpu/bf16/convolution_tiles.h"

namespace tutti::device::cpu {

constexpr int64_t kPanel = 16;
// Words that keep a pixel's channels, which go to as many panels, from meeting in one set of the
// first cache.
constexpr int64_t kApart = 16;
// Pairs of pixels that are laid out together, between two visits of all the sums.
constexpr int64_t kPairsOfChunk = 192;

struct Geometry {
  // `threads` share the bands.
  explicit Geometry(const Convolution& shape, int64_t pairs_of_chunk = kPairsOfChunk,
                    int64_t threads = 1)
      : c(shape) {
    height = c.out_height();
    width = c.out_width();
    images = c.images;
    if (c.kernel == 1) {  // rows mean nothing, so they are made long
      width = std::min<int64_t>(c.out_pixels(), 128);
      height = (c.out_pixels() + width - 1) / width;
      images = 1;
    }
    layouts = c.kernel == 1 || c.is_stem() ? 1 : c.stride == 1 ? 2 : 3;
    pairs = (width + 1) / 2;
    pitch = pairs + (layouts == 2 ? 1 : 0);
    // Bands of the same size: what is left of an image's last one is multiplied as zeros.
    bands_of_image =
        std::clamp<int64_t>((height * pairs + pairs_of_chunk / 2) / pairs_of_chunk, 1, height);
    if (c.kernel == 1) {  // the only image
      bands_of_image = std::min(height, (bands_of_image + threads - 1) / threads * threads);
    }
    rows = (height + bands_of_image - 1) / bands_of_image;
    bands_of_image = (height + rows - 1) / rows;
    x_rows = (rows - 1) * x_step() + c.kernel;
    bands = images * bands_of_image;
    bands_of_chunk = std::max<int64_t>(1, pairs_of_chunk / (rows * pairs));
  }
  int64_t x_step() const { return c.kernel == 1 ? 1 : c.stride; }
  // Return the kernel's rows and columns, of which a stem has one with more channels.
  int64_t tap_columns() const { return c.is_stem() ? 1 : c.kernel; }
  int64_t taps() const { return c.kernel * tap_columns(); }
  int64_t inputs() const { return c.is_stem() ? 24 : c.inputs; }
  int64_t sums() const { return taps() * inputs() * c.outputs; }
  // Return the outputs of a tile, and how many such blocks there are.
  int64_t block() const { return BlockOf(c.outputs); }
  int64_t blocks() const { return c.outputs / block(); }

  Convolution c;
  int64_t images, height, width;  // of the output
  int64_t layouts;
  int64_t pairs, pitch;  // of a row of gradients, of x
  int64_t rows, x_rows, bands_of_image, bands, bands_of_chunk;
};

// Stores `channels` of each of two pixels, null for one of zeros, to panels that lie `panel` words
// apart.
inline void StorePair(const uint16_t* a, const uint16_t* b, int64_t channels, int64_t panel,
                      uint32_t* to) {
  alignas(64) static constexpr uint16_t kZeros[kBlock] = {};
  if (channels < kBlock) {
    return _mm512_storeu_si512(
        to, InterleaveNarrow(a == nullptr ? kZeros : a, b == nullptr ? kZeros : b));
  }
  for (int64_t channel = 0; channel < channels; channel += kBlock, to += 2 * panel) {
    __m512i first, second;
    Interleave(a == nullptr ? kZeros : a + channel, b == nullptr ? kZeros : b + channel, first,
               second);
    _mm512_storeu_si512(to, first);
    _mm512_storeu_si512(to + panel, second);
  }
}

// Stores pairs of the pixels that `pixel`(0), (1), ... finds, null for one of zeros.
template <typename Pixel>
void StorePairs(int64_t pairs, int64_t channels, int64_t panel, uint32_t* to, const Pixel& pixel) {
  for (int64_t pair = 0; pair < pairs; ++pair, to += kPanel) {
    StorePair(pixel(2 * pair), pixel(2 * pair + 1), channels, panel, to);
  }
}

inline void StoreGradients(const Geometry& g, const uint16_t* dy, int64_t image, int64_t row,
                           int64_t panel, uint32_t* to) {
  const int64_t base = (image * g.height + row) * g.width;
  const int64_t end = row < g.height ? std::min(g.width, g.c.out_pixels() - base) : 0;
  StorePairs(g.pairs, g.c.outputs, panel, to, [&](int64_t column) {
    return column < end ? dy + (base + column) * g.c.outputs : nullptr;
  });
}

// Stores row `row` of x in one of its layouts, of a kernel of 1x1 the pixels of an output's row.
inline void StoreRow(const Geometry& g, const uint16_t* x, int64_t image, int64_t row,
                     int64_t layout, int64_t panel, uint32_t* to) {
  const Convolution& c = g.c;
  if (c.kernel == 1) {
    const int64_t base = row * g.width;
    return StorePairs(g.pairs, c.inputs, panel, to, [&](int64_t column) {
      const bool inside = column < g.width && base + column < c.out_pixels();
      return inside ? x + PlaceOf(c, base + column) : nullptr;
    });
  }
  const int64_t first = g.layouts == 2 ? -layout : layout - 1;
  const bool row_inside = row >= 0 && row < c.height;
  const uint16_t* const from = x + (image * c.height + row) * c.width * c.inputs;
  StorePairs(g.pitch, c.inputs, panel, to, [&](int64_t i) {
    const int64_t column = first + i * c.stride;
    return row_inside && column >= 0 && column < c.width ? from + column * c.inputs : nullptr;
  });
}

// Stores a kernel's row, over all of its channels, for one pixel.
inline void StoreStemRow(const Geometry& g, const uint16_t* x, int64_t image, int64_t row,
                         int64_t panel, uint32_t* to) {
  static thread_local Scratch<uint16_t> scratch;
  const Convolution& c = g.c;
  const int64_t width = (c.width + 2 * c.border()) * c.inputs, step = c.stride * c.inputs;
  uint16_t* const bordered = scratch.Of(width + 2 * step + kBlock);
  const bool inside = row >= 0 && row < c.height;
  CopyBordered(inside ? x + (image * c.height + row) * c.width * c.inputs : nullptr,
               c.width * c.inputs, c.border() * c.inputs, bordered);
  std::fill_n(bordered + width, 2 * step + kBlock, uint16_t{0});
  StorePairs(g.pairs, kBlock, panel, to, [&](int64_t column) { return bordered + column * step; });
}

// What one thread has laid out of a chunk, in words.
struct Work {
  const uint32_t* x;          // [layout][inputs / 16][band][row][pair][16]
  const uint32_t* gradients;  // [outputs / 16][band][row][pair][16]
  int64_t x_layout, x_panel, x_band, dy_panel, bands;
  bool first;  // there are no sums yet
};

// Returns where the pairs of a tap in a column of the kernel begin.
inline const uint32_t* BeginOf(const Geometry& g, const Work& work, int64_t tap_row,
                               int64_t column) {
  int64_t layout = column, pair = 0;
  if (g.layouts == 2) {
    layout = column == 1 ? 0 : 1;
    pair = column == 2 ? 1 : 0;
  }
  return work.x + layout * work.x_layout + (tap_row * g.pitch + pair) * kPanel;
}

}  // namespace tutti::device::cpu
