#include "runtime/data/augment/resample_kernel.h"

#include <cstring>

#include "base/vector_width.h"

namespace tutti::data {
namespace {

// A column of a band. Narrower machines take it in parts.
typedef float Column __attribute__((vector_size(64)));
typedef uint32_t Words __attribute__((vector_size(64)));
typedef float Quad __attribute__((vector_size(16)));

constexpr size_t kStep = 16;  // columns that are summed at a time
constexpr int kTile = 4;      // columns of the result that are stored at a time

size_t RoundUp(size_t count) { return (count + kStep - 1) / kStep * kStep; }

// to[i] = sum over k of weights[k] * from[k * stride + i], added in the order of k.
template <int kRows>
TUTTI_INLINE void SumOfRows(const uint8_t* __restrict from, size_t stride,
                            const float* __restrict weights, size_t count, bool more,
                            float* __restrict to) {
  for (size_t i = 0; i < count; ++i) {
    float sum = weights[0] * static_cast<float>(from[i]);
    if (more) sum = to[i] + sum;
    if constexpr (kRows > 1) sum += weights[1] * static_cast<float>(from[stride + i]);
    if constexpr (kRows > 2) sum += weights[2] * static_cast<float>(from[2 * stride + i]);
    if constexpr (kRows > 3) sum += weights[3] * static_cast<float>(from[3 * stride + i]);
    to[i] = sum;
  }
}

TUTTI_INLINE void SumRows(const uint8_t* from, size_t stride, const float* weights, int rows,
                          size_t count, float* to) {
  for (bool more = false; rows > 0; more = true) {
    switch (rows) {
      case 1:
        SumOfRows<1>(from, stride, weights, count, more, to);
        break;
      case 2:
        SumOfRows<2>(from, stride, weights, count, more, to);
        break;
      case 3:
        SumOfRows<3>(from, stride, weights, count, more, to);
        break;
      default:
        SumOfRows<4>(from, stride, weights, count, more, to);
        break;
    }
    rows -= 4;
    from += 4 * stride;
    weights += 4;
  }
}

TUTTI_INLINE Quad LoadQuad(const float* from) {
  Quad quad;
  std::memcpy(&quad, from, sizeof quad);
  return quad;
}

TUTTI_INLINE void Transpose(Quad& a, Quad& b, Quad& c, Quad& d) {
  const Quad ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const Quad ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Quad cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const Quad cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  a = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
  b = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
  c = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
  d = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
}

// Lines of `stride` floats become columns of kBandRows.
TUTTI_INLINE void TurnOver(const float* lines, size_t stride, size_t count, float* columns) {
  for (size_t x = 0; x < count; x += 4) {
    for (size_t y = 0; y < kBandRows; y += 4) {
      const float* from = lines + y * stride + x;
      Quad a = LoadQuad(from), b = LoadQuad(from + stride), c = LoadQuad(from + 2 * stride),
           d = LoadQuad(from + 3 * stride);
      Transpose(a, b, c, d);
      float* to = columns + x * kBandRows + y;
      std::memcpy(to, &a, sizeof a);
      std::memcpy(to + kBandRows, &b, sizeof b);
      std::memcpy(to + 2 * kBandRows, &c, sizeof c);
      std::memcpy(to + 3 * kBandRows, &d, sizeof d);
    }
  }
}

// The plane's columns that are looked at, each resized to the band's rows.
TUTTI_INLINE void ColumnsOf(const BandPlane& plane, int rows, float* lines, float* columns) {
  const size_t count = RoundUp(static_cast<size_t>(plane.count));
  for (int y = 0; y < rows; ++y) {
    const uint8_t* from = plane.samples +
                          static_cast<size_t>(plane.y_first[y] - plane.top) * plane.stride +
                          (plane.begin - plane.left);
    SumRows(from, plane.stride, plane.y_weights + y * plane.y_taps, plane.y_taps, count,
            lines + static_cast<size_t>(y) * count);
  }
  TurnOver(lines, count, count, columns);
}

TUTTI_INLINE Column SumOfColumns(const BandPlane& plane, const float* columns, int x) {
  const float* from = columns + static_cast<size_t>(plane.x_first[x] - plane.begin) * kBandRows;
  const float* weights = plane.x_weights + x * plane.x_taps;
  Column sum = {};
  for (int k = 0; k < plane.x_taps; ++k, from += kBandRows) {
    Column column;
    std::memcpy(&column, from, sizeof column);
    sum += column * weights[k];
  }
  return sum;
}

TUTTI_INLINE Column Clamp(Column value) {
  const Column low = {}, high = low + 255.0f;
  value = value > low ? value : low;
  return value < high ? value : high;
}

// A pixel of each row, by its three colours.
struct Pixels {
  Column red, green, blue;
};

// JFIF's equations.
TUTTI_INLINE Pixels ToRgb(Column y, Column cb, Column cr) {
  cb -= 128.0f;
  cr -= 128.0f;
  return {Clamp(y + 1.402f * cr), Clamp(y - 0.344136286f * cb - 0.714136286f * cr),
          Clamp(y + 1.772f * cb)};
}

TUTTI_INLINE Pixels PixelsAt(const ResizeBand& band, float* const* columns, int x) {
  const int from = band.flip ? band.width - 1 - x : x;
  const Column one = SumOfColumns(band.plane[0], columns[0], from);
  Pixels p{one, one, one};
  if (band.colors != Colors::kGrey) {
    p.green = SumOfColumns(band.plane[1], columns[1], from);
    p.blue = SumOfColumns(band.plane[2], columns[2], from);
    if (band.colors == Colors::kYCbCr) p = ToRgb(p.red, p.green, p.blue);
  }
  const NormalizedTarget& t = band.target;
  return {p.red * t.scale[0] + t.bias[0], p.green * t.scale[1] + t.bias[1],
          p.blue * t.scale[2] + t.bias[2]};
}

// ToBFloat16 of each, in the upper half of a word; the lower holds what was rounded away.
TUTTI_INLINE Words Rounded(const Column& value) {
  Words bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits + 0x7FFF + (bits >> 16 & 1);
}

TUTTI_INLINE void StoreFloats(const Pixels& p, int rows, size_t row_bytes, char* to) {
  alignas(64) float colors[3][kBandRows];
  std::memcpy(colors[0], &p.red, sizeof p.red);
  std::memcpy(colors[1], &p.green, sizeof p.green);
  std::memcpy(colors[2], &p.blue, sizeof p.blue);
  for (int y = 0; y < rows; ++y, to += row_bytes) {
    const float pixel[3] = {colors[0][y], colors[1][y], colors[2][y]};
    std::memcpy(to, pixel, sizeof pixel);
  }
}

// A pixel is six bytes. kBytes is 8 unless it is the last of its row: the next pixel overwrites
// two.
template <size_t kBytes>
TUTTI_INLINE void StoreHalves(const Pixels& p, int rows, size_t row_bytes, char* to) {
  alignas(64) uint32_t red_green[kBandRows], blue[kBandRows];
  alignas(64) uint64_t pixels[kBandRows];
  const Words low = Rounded(p.red) >> 16 | (Rounded(p.green) & 0xFFFF0000);
  const Words high = Rounded(p.blue) >> 16;
  std::memcpy(red_green, &low, sizeof low);
  std::memcpy(blue, &high, sizeof high);
  for (size_t y = 0; y < kBandRows; ++y) pixels[y] = red_green[y] | uint64_t{blue[y]} << 32;
  if (rows == static_cast<int>(kBandRows)) {
    for (size_t y = 0; y < kBandRows; ++y) std::memcpy(to + y * row_bytes, &pixels[y], kBytes);
  } else {
    for (int y = 0; y < rows; ++y, to += row_bytes) std::memcpy(to, &pixels[y], kBytes);
  }
}

// Four columns of one colour, of which `valid` count, as pieces of the rows of its plane.
TUTTI_INLINE void StorePlanar(const Column* tile, int valid, int rows,
                              const NormalizedTarget& target, char* to) {
  alignas(64) float columns[kTile][kBandRows];
  std::memcpy(columns, tile, sizeof columns);
  for (size_t y = 0; y < kBandRows; y += 4) {
    Quad row[4];
    for (size_t i = 0; i < 4; ++i) row[i] = LoadQuad(columns[i] + y);
    Transpose(row[0], row[1], row[2], row[3]);
    for (size_t i = 0; i < 4 && static_cast<int>(y + i) < rows; ++i) {
      char* at = to + (y + i) * target.row_bytes;
      if (target.type == PixelType::kFloat32) {
        std::memcpy(at, &row[i], static_cast<size_t>(valid) * 4);
      } else {
        uint16_t halves[4];
        for (int x = 0; x < 4; ++x) halves[x] = ToBFloat16(row[i][x]);
        std::memcpy(at, halves, static_cast<size_t>(valid) * 2);
      }
    }
  }
}

TUTTI_INLINE void MakeChannelsLast(const ResizeBand& band, float* const* columns) {
  const NormalizedTarget& target = band.target;
  char* to = target.out;
  for (int x = 0; x < band.width; ++x, to += target.pixel_bytes) {
    const Pixels pixels = PixelsAt(band, columns, x);
    if (target.type == PixelType::kFloat32) {
      StoreFloats(pixels, band.rows, target.row_bytes, to);
    } else if (x + 1 < band.width) {
      StoreHalves<8>(pixels, band.rows, target.row_bytes, to);
    } else {
      StoreHalves<6>(pixels, band.rows, target.row_bytes, to);
    }
  }
}

TUTTI_INLINE void MakePlanar(const ResizeBand& band, float* const* columns) {
  const NormalizedTarget& target = band.target;
  Column red[kTile] = {}, green[kTile] = {}, blue[kTile] = {};
  for (int x = 0; x < band.width; x += kTile) {
    const int valid = band.width - x < kTile ? band.width - x : kTile;
    for (int i = 0; i < valid; ++i) {
      const Pixels pixels = PixelsAt(band, columns, x + i);
      red[i] = pixels.red;
      green[i] = pixels.green;
      blue[i] = pixels.blue;
    }
    char* const to = target.out + static_cast<size_t>(x) * target.pixel_bytes;
    StorePlanar(red, valid, band.rows, target, to);
    StorePlanar(green, valid, band.rows, target, to + target.plane_bytes);
    StorePlanar(blue, valid, band.rows, target, to + 2 * target.plane_bytes);
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

}  // namespace

size_t ScratchFloats(size_t count) { return RoundUp(count) * kBandRows * 4; }

TUTTI_FOR_EACH_VECTOR_WIDTH
void ResizeABand(const ResizeBand& band) {
  const int planes = band.colors == Colors::kGrey ? 1 : 3;
  float* columns[3] = {};
  float* free = band.scratch;
  for (int c = 0; c < planes; ++c) {
    columns[c] = free;
    free += RoundUp(static_cast<size_t>(band.plane[c].count)) * kBandRows;
  }
  FetchTarget(band);
  for (int c = 0; c < planes; ++c) ColumnsOf(band.plane[c], band.rows, free, columns[c]);
  if (band.target.layout == PixelLayout::kPlanar) {
    MakePlanar(band, columns);
  } else {
    MakeChannelsLast(band, columns);
  }
}

}  // namespace tutti::data
