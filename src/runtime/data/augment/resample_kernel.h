// Declares the arithmetic of Resampler, which each kernel implements. Sixteen rows of the result
// are made at a time, a band; a vector holds a part of one column of it.
//
//   planes ──sums over rows──> 16 lines ──turned over──> columns ──sums over columns──> colour,
//   normalise, round ──> 16 rows of the batch
//
// Sums are of whole numbers: samples of 8 bits by weights of 14, kept between the two in 15 bits
// (1/256 of a level is the most that rounding changes there). The processor adds up products of
// pairs of 16 bits in one instruction; so lines have two neighbours of a row beside one another,
//
//   columns: [pair of columns][row of the band][left or right]
//
// Colour and normalising are floating point, without contraction to fused multiply-adds and in a
// fixed order: the same bits with every set of instructions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/data/augment/normalize.h"
#include "runtime/data/augment/taps.h"
#include "runtime/data/image.h"
#include "runtime/data/instruction_kernels.h"

namespace tutti::data {

inline constexpr size_t kBandRows = 16;

struct BandPlane {
  const uint8_t* samples = nullptr;  // as in Plane
  size_t stride = 0;
  int left = 0, top = 0;
  const int* x_first = nullptr;        // as PairTaps' on a grid, from the result's first column
  const int32_t* x_weights = nullptr;  // likewise
  const int* y_first = nullptr;        // as PairTaps', from the first row of the band
  const int32_t* y_weights = nullptr;  // likewise
  int x_pairs = 0, y_pairs = 0;        // PairTaps::count
  int y_taps = 0;                      // of which the last pair may have but one
  int begin = 0;                       // the first column of samples that is looked at
  int count = 0;                       // of such columns
};

struct ResizeBand {
  Colors colors = Colors::kRgb;
  BandPlane plane[3];
  int rows = 0;   // at most kBandRows
  int width = 0;  // of the result
  bool flip = false;
  NormalizedTarget target;  // of the band's first row
  int16_t* scratch = nullptr;
};

// Returns how many values of scratch memory are needed for planes of which up to `count` columns
// are looked at.
size_t ScratchValues(size_t count);

extern const Kernels<void(const ResizeBand&)> kResizeABand;

}  // namespace tutti::data
