// Window says what a convolution's products multiply: for each result a window of neighbouring
// pixels of a source (x; for the input's gradient dy), laid out in one piece, with zeros around an
// image. In floats, channels-last. Thread-safe: values without state.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/device/cpu/bf16/convolution_bf16.h"

namespace tutti::device::cpu::fp32 {

// The taps of a kernel that a window sees along one side, the first pixel's first.
struct Side {
  int64_t first;          // of its pixels, counted from the one that has the result's place
  std::vector<int> taps;  // one for each pixel
  int64_t size() const { return static_cast<int64_t>(taps.size()); }
};

struct Window {
  int64_t images, height, width, depth;  // of the source
  int64_t rows, columns;                 // of an image's results
  int64_t step;                          // in the source, from one result to the next
  Side tall, wide;

  int64_t results() const { return images * rows * columns; }
  int64_t values() const { return tall.size() * wide.size() * depth; }
  // Returns whether all windows together are the source as it lies in memory.
  bool is_source() const {
    return tall.size() == 1 && wide.size() == 1 && tall.first == 0 && wide.first == 0 &&
           step == 1 && rows == height && columns == width;
  }
};

// A result, by its number among results().
struct ResultPlace {
  int64_t image, row, column;
};
inline ResultPlace PlaceOf(const Window& w, int64_t result) {
  const int64_t row = result / w.columns;
  return {row / w.rows, row % w.rows, result % w.columns};
}

// Returns the source's pixel that has the place of a result, as a kernel of 1x1 sees it.
inline const float* PixelAt(const Window& w, const float* source, const ResultPlace& place) {
  return source +
         ((place.image * w.height + place.row * w.step) * w.width + place.column * w.step) *
             w.depth;
}

Window ForwardWindow(const Convolution& c);
// Returns which pixels of dy are seen by the pixels of x whose row and column leave these
// remainders by the step. A side may be empty.
Window InputGradientWindow(const Convolution& c, int64_t row, int64_t column);

// Copies row `row` of the window of `place`, wide.size() * depth values, to `to`.
void GatherRow(const Window& w, const float* source, const ResultPlace& place, int64_t row,
               float* to);

}  // namespace tutti::device::cpu::fp32
