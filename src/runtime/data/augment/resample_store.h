// Implements the last part of resample_kernel.h: columns of finished pixels become pieces of the
// batch's rows. Compiled into each of the kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/machine/vector_width.h"
#include "runtime/data/augment/resample_kernel.h"

namespace tutti::data {

inline constexpr size_t kTile = 16;  // columns that are stored at a time, where rows are stored
static_assert(kTile == kBandRows);

typedef float Quad __attribute__((vector_size(16)));
typedef float Octet __attribute__((vector_size(32)));

// Columns of the result, kBandRows values each, by colour.
inline constexpr size_t kTileValues = kTile * kBandRows;
typedef float Tile[3][kTileValues];

template <typename Vector>
TUTTI_INLINE Vector Load(const void* from) {
  Vector vector;
  std::memcpy(&vector, from, sizeof vector);
  return vector;
}

// Transposes each four lanes on their own: lane i of the j-th vector becomes lane j of the i-th.
TUTTI_INLINE void TransposeQuads(Quad& a, Quad& b, Quad& c, Quad& d) {
  const Quad ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const Quad ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Quad cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const Quad cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  a = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
  b = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
  c = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
  d = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
}

TUTTI_INLINE void TransposeQuads(Octet& a, Octet& b, Octet& c, Octet& d) {
  const Octet ab_low = __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13);
  const Octet ab_high = __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15);
  const Octet cd_low = __builtin_shufflevector(c, d, 0, 8, 1, 9, 4, 12, 5, 13);
  const Octet cd_high = __builtin_shufflevector(c, d, 2, 10, 3, 11, 6, 14, 7, 15);
  a = __builtin_shufflevector(ab_low, cd_low, 0, 1, 8, 9, 4, 5, 12, 13);
  b = __builtin_shufflevector(ab_low, cd_low, 2, 3, 10, 11, 6, 7, 14, 15);
  c = __builtin_shufflevector(ab_high, cd_high, 0, 1, 8, 9, 4, 5, 12, 13);
  d = __builtin_shufflevector(ab_high, cd_high, 2, 3, 10, 11, 6, 7, 14, 15);
}

// Loads four words of a line; and, if a vector has eight, of the line four below it.
template <typename Vector>
TUTTI_INLINE Vector LoadQuads(const float* line, size_t stride) {
  const Quad upper = Load<Quad>(line);
  if constexpr (sizeof(Vector) == sizeof(Quad)) {
    return upper;
  } else {
    return __builtin_shufflevector(upper, Load<Quad>(line + 4 * stride), 0, 1, 2, 3, 4, 5, 6, 7);
  }
}

// Turns kTile lines of kColumns words of 32 bits into kColumns columns of kTile.
template <int kLanes, size_t kColumns>
TUTTI_INLINE void Transpose(const void* from, void* to) {
  typedef std::conditional_t<(kLanes < 8), Quad, Octet> Vector;
  const float* lines = static_cast<const float*>(from);
  float* columns = static_cast<float*>(to);
  for (size_t y = 0; y < kTile; y += sizeof(Vector) / sizeof(float)) {
    for (size_t x = 0; x < kColumns; x += 4) {
      const float* const line = lines + y * kColumns + x;
      auto a = LoadQuads<Vector>(line, kColumns);
      auto b = LoadQuads<Vector>(line + kColumns, kColumns);
      auto c = LoadQuads<Vector>(line + 2 * kColumns, kColumns);
      auto d = LoadQuads<Vector>(line + 3 * kColumns, kColumns);
      TransposeQuads(a, b, c, d);
      float* const column = columns + x * kTile + y;
      std::memcpy(column, &a, sizeof a);
      std::memcpy(column + kTile, &b, sizeof b);
      std::memcpy(column + 2 * kTile, &c, sizeof c);
      std::memcpy(column + 3 * kTile, &d, sizeof d);
    }
  }
}

// Returns ToBFloat16 of a pixel's three colours, in the lower 48 bits.
TUTTI_INLINE uint64_t Halves(float red, float green, float blue) {
  const uint32_t low = ToBFloat16(red) | static_cast<uint32_t>(ToBFloat16(green)) << 16;
  return low | uint64_t{ToBFloat16(blue)} << 32;
}

// A pixel is six bytes. kBytes is 8 unless it is the last of its row: the next pixel overwrites
// two.
template <size_t kBytes>
TUTTI_INLINE void StoreHalves(const Tile& tile, size_t column, int rows, size_t row_bytes,
                              char* to) {
  alignas(64) uint64_t pixels[kBandRows];
  const size_t from = column * kBandRows;
  for (size_t y = 0; y < kBandRows; ++y) {
    pixels[y] = Halves(tile[0][from + y], tile[1][from + y], tile[2][from + y]);
  }
  if (rows == int{kBandRows}) {
    for (size_t y = 0; y < kBandRows; ++y) std::memcpy(to + y * row_bytes, &pixels[y], kBytes);
  } else {
    for (int y = 0; y < rows; ++y, to += row_bytes) std::memcpy(to, &pixels[y], kBytes);
  }
}

TUTTI_INLINE void StoreFloats(const Tile& tile, size_t column, int rows, size_t row_bytes,
                              char* to) {
  const size_t from = column * kBandRows;
  for (size_t y = 0; y < static_cast<size_t>(rows); ++y, to += row_bytes) {
    const float pixel[3] = {tile[0][from + y], tile[1][from + y], tile[2][from + y]};
    std::memcpy(to, pixel, sizeof pixel);
  }
}

// Stores `count` columns from the result's column x on.
TUTTI_INLINE void StoreChannelsLast(const Tile& tile, int x, int count, const ResizeBand& band) {
  const NormalizedTarget& target = band.target;
  char* to = target.out + static_cast<size_t>(x) * target.pixel_bytes;
  for (int i = 0; i < count; ++i, to += target.pixel_bytes) {
    const auto column = static_cast<size_t>(i);
    if (target.type == PixelType::kFloat32) {
      StoreFloats(tile, column, band.rows, target.row_bytes, to);
    } else if (x + i + 1 < band.width) {
      StoreHalves<8>(tile, column, band.rows, target.row_bytes, to);
    } else {
      StoreHalves<6>(tile, column, band.rows, target.row_bytes, to);
    }
  }
}

// Stores `count` values of a line.
template <typename Value>
TUTTI_INLINE void StoreLine(const Value* line, int count, char* to) {
  if (count == int{kTile}) {
    typedef std::conditional_t<sizeof(Value) == 4, Octet, Quad> Vector;
    for (size_t i = 0; i < 2; ++i) {
      const auto half = Load<Vector>(line + i * kTile / 2);
      std::memcpy(to + i * sizeof half, &half, sizeof half);
    }
  } else {
    for (int x = 0; x < count; ++x) {
      std::memcpy(to + static_cast<size_t>(x) * sizeof(Value), line + x, sizeof(Value));
    }
  }
}

template <int kLanes>
TUTTI_INLINE void StorePlanar(const Tile& tile, int x, int count, const ResizeBand& band) {
  const NormalizedTarget& target = band.target;
  for (size_t c = 0; c < 3; ++c) {
    alignas(64) float lines[kTileValues];
    Transpose<kLanes, kTile>(tile[c], lines);
    char* to = target.out + c * target.plane_bytes + static_cast<size_t>(x) * target.pixel_bytes;
    if (target.type == PixelType::kFloat32) {
      for (int y = 0; y < band.rows; ++y, to += target.row_bytes) {
        StoreLine(lines + static_cast<size_t>(y) * kTile, count, to);
      }
    } else {
      uint16_t halves[kTileValues];
      for (size_t i = 0; i < kTileValues; ++i) halves[i] = ToBFloat16(lines[i]);
      for (int y = 0; y < band.rows; ++y, to += target.row_bytes) {
        StoreLine(halves + static_cast<size_t>(y) * kTile, count, to);
      }
    }
  }
}

template <int kLanes>
TUTTI_INLINE void Store(const Tile& tile, int x, int count, const ResizeBand& band) {
  if (band.target.layout == PixelLayout::kPlanar) {
    StorePlanar<kLanes>(tile, x, count, band);
  } else {
    StoreChannelsLast(tile, x, count, band);
  }
}

}  // namespace tutti::data
