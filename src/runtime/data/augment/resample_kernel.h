// The arithmetic of Resampler, compiled once for each width of vectors and chosen when the program
// starts. Sixteen rows of the result are made at a time, a band; a vector holds one column of it.
//
//   planes ──sums over rows──> 16 lines ──turned over──> columns ──sums over columns──> colour,
//   normalise, round ──> 16 rows of the batch
//
// No contraction to fused multiply-adds and a fixed order of sums: the same bits at every width.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/data/augment/normalize.h"
#include "runtime/data/augment/taps.h"
#include "runtime/data/decode/image.h"

namespace tutti::data {

inline constexpr size_t kBandRows = 16;

struct BandPlane {
  const uint8_t* samples = nullptr;  // as in Plane
  size_t stride = 0;
  int left = 0, top = 0;
  const int* x_first = nullptr;  // as AxisTaps', from the first column of the result
  const float* x_weights = nullptr;
  const int* y_first = nullptr;  // likewise, from the first row of the band
  const float* y_weights = nullptr;
  int x_taps = 0, y_taps = 0;  // AxisTaps::count
  int begin = 0;               // the first column of samples that is looked at
  int count = 0;               // of such columns
};

struct ResizeBand {
  Colors colors = Colors::kRgb;
  BandPlane plane[3];
  int rows = 0;   // at most kBandRows
  int width = 0;  // of the result
  bool flip = false;
  NormalizedTarget target;  // of the band's first row
  float* scratch = nullptr;
};

// Floats of scratch memory, for planes of which up to `count` columns are looked at.
size_t ScratchFloats(size_t count);

void ResizeABand(const ResizeBand& band);

}  // namespace tutti::data
