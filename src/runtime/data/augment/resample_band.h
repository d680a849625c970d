// Implements what all kernels of resample_kernel.h have in common. `Sums` is how one adds up:
//   static constexpr int kLanes;  // 32-bit words in a vector
//   // kTile columns of the band's row `y`, from those of the plane that begin at `from`.
//   template <int kPairs> static void OverRows(const BandPlane& plane, int y, const uint8_t* from,
//   int16_t* line);
//   // Column x of the result, its kBandRows rows; at most 255 << kSumBits.
//   template <int kPairs> static void OverColumns(const BandPlane& plane, const int16_t* columns,
//   int x, float* to);
// kPairs is how many pairs are added up, or 0: as many as the plane says.
#pragma once

#include <cstring>

#include "runtime/data/augment/resample_kernel.h"
#include "runtime/data/augment/resample_store.h"

namespace tutti::data {

inline constexpr int kLineBits = 7;  // of a line's fraction
inline constexpr int kSumBits = kLineBits + PairTaps::kBits;

// Returns how many columns of a plane are summed up. A sum over columns looks at up to two beyond
// the last.
TUTTI_INLINE size_t SummedColumns(size_t count) { return (count + 2 + kTile - 1) / kTile * kTile; }

template <typename Sums, int kPairs>
TUTTI_INLINE void ColumnsOfPairs(const BandPlane& plane, int rows, int16_t* columns) {
  alignas(64) int16_t lines[kBandRows][kTile] = {};
  const uint8_t* samples = plane.samples + (plane.begin - plane.left);
  int16_t* const end = columns + SummedColumns(static_cast<size_t>(plane.count)) * kBandRows;
  for (; columns != end; columns += kTile * kBandRows, samples += kTile) {
    for (int y = 0; y < rows; ++y) {
      const auto row = static_cast<size_t>(plane.y_first[y] - plane.top);
      Sums::template OverRows<kPairs>(plane, y, samples + row * plane.stride, lines[y]);
    }
    Transpose<Sums::kLanes, kTile / 2>(lines, columns);
  }
}

// Writes the plane's columns that are looked at, each resized to the band's rows.
template <typename Sums>
TUTTI_INLINE void ColumnsOf(const BandPlane& plane, int rows, int16_t* columns) {
  switch (plane.y_pairs) {
    case 1:
      return ColumnsOfPairs<Sums, 1>(plane, rows, columns);
    case 2:
      return ColumnsOfPairs<Sums, 2>(plane, rows, columns);
    default:
      return ColumnsOfPairs<Sums, 0>(plane, rows, columns);
  }
}

template <typename Sums, int kPairs>
TUTTI_INLINE void TileOfPairs(const ResizeBand& band, const BandPlane& plane,
                              const int16_t* columns, int x, int count, float* tile) {
  const int step = band.flip ? -1 : 1;
  int from = band.flip ? band.width - 1 - x : x;
  for (int i = 0; i < count; ++i, from += step, tile += kBandRows) {
    Sums::template OverColumns<kPairs>(plane, columns, from, tile);
  }
}

// Computes `count` columns of the result from column x on, of one plane.
template <typename Sums>
TUTTI_INLINE void TileOf(const ResizeBand& band, const BandPlane& plane, const int16_t* columns,
                         int x, int count, float* tile) {
  switch (plane.x_pairs) {
    case 1:
      return TileOfPairs<Sums, 1>(band, plane, columns, x, count, tile);
    case 2:
      return TileOfPairs<Sums, 2>(band, plane, columns, x, count, tile);
    case 3:
      return TileOfPairs<Sums, 3>(band, plane, columns, x, count, tile);
    default:
      return TileOfPairs<Sums, 0>(band, plane, columns, x, count, tile);
  }
}

TUTTI_INLINE float Clamp(float value) {
  constexpr float kHigh = 255.0f * (1 << kSumBits);
  value = value > 0 ? value : 0;
  return value < kHigh ? value : kHigh;
}

// Computes JFIF's equations.
TUTTI_INLINE void ToRgb(Tile& tile) {
  constexpr float kMiddle = 128.0f * (1 << kSumBits);
  for (size_t i = 0; i < kTileValues; ++i) {
    const float y = tile[0][i], cb = tile[1][i] - kMiddle, cr = tile[2][i] - kMiddle;
    tile[0][i] = Clamp(y + 1.402f * cr);
    tile[1][i] = Clamp(y - 0.344136286f * cb - 0.714136286f * cr);
    tile[2][i] = Clamp(y + 1.772f * cb);
  }
}

TUTTI_INLINE void Normalize(const NormalizedTarget& target, Tile& tile) {
  for (int c = 0; c < 3; ++c) {
    const float scale = target.scale[c] * (1.0f / (1 << kSumBits)), bias = target.bias[c];
    for (size_t i = 0; i < kTileValues; ++i) tile[c][i] = tile[c][i] * scale + bias;
  }
}

// Asks for the lines of memory that the band's rows will be written to, while others are read.
TUTTI_INLINE void FetchTarget(const ResizeBand& band) {
  constexpr size_t kLine = 64;
  const NormalizedTarget& target = band.target;
  const size_t bytes = static_cast<size_t>(band.rows) * target.row_bytes;
  for (int c = 0; c < (target.layout == PixelLayout::kPlanar ? 3 : 1); ++c) {
    const char* const rows = target.out + static_cast<size_t>(c) * target.plane_bytes;
    for (size_t at = 0; at < bytes; at += kLine) __builtin_prefetch(rows + at, 1);
  }
}

template <typename Sums>
TUTTI_INLINE void ResizeBy(const ResizeBand& band) {
  const int planes = band.colors == Colors::kGrey ? 1 : 3;
  int16_t* columns[3] = {};
  int16_t* free = band.scratch;
  FetchTarget(band);
  for (int c = 0; c < planes; ++c) {
    columns[c] = free;
    free += SummedColumns(static_cast<size_t>(band.plane[c].count)) * kBandRows;
    ColumnsOf<Sums>(band.plane[c], band.rows, columns[c]);
  }
  alignas(64) Tile tile;
  for (int x = 0; x < band.width; x += kTile) {
    const int left = band.width - x, count = left < int{kTile} ? left : int{kTile};
    for (int c = 0; c < planes; ++c) {
      TileOf<Sums>(band, band.plane[c], columns[c], x, count, tile[c]);
    }
    if (planes == 1) {
      std::memcpy(tile[1], tile[0], sizeof tile[0]);
      std::memcpy(tile[2], tile[0], sizeof tile[0]);
    }
    if (band.colors == Colors::kYCbCr) ToRgb(tile);
    Normalize(band.target, tile);
    Store<Sums::kLanes>(tile, x, count, band);
  }
}

}  // namespace tutti::data
