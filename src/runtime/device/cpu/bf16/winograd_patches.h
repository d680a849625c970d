// Transforms patches of 4x4 pixels, of which the convolutions by Winograd's way make 2x2 results
// (Lavin and Gray 2016, "Fast Algorithms for Convolutional Neural Networks", whose letters these
// are). Included by its sources alone, below the pragma of AVX512-BF16.
#pragma once

#include <array>

#include "runtime/device/cpu/bf16/convolution_tiles.h"

namespace tutti::device::cpu {

constexpr int64_t kPlaces = 16;  // of a patch
// Bytes that keep a patch's values, which go to as many places, from meeting in one set of the
// first cache.
constexpr int64_t kBytesApart = 64;

// Sixteen values of a patch, row by row.
using Patch = __m512[kPlaces];

// Computes B^T d B of the paper, in place.
inline __attribute__((always_inline)) void TransformInput(Patch& d) {
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512 a = d[i], b = d[4 + i], c = d[8 + i], e = d[12 + i];
    d[i] = _mm512_sub_ps(a, c);
    d[4 + i] = _mm512_add_ps(b, c);
    d[8 + i] = _mm512_sub_ps(c, b);
    d[12 + i] = _mm512_sub_ps(b, e);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    const __m512 a = d[i], b = d[i + 1], c = d[i + 2], e = d[i + 3];
    d[i] = _mm512_sub_ps(a, c);
    d[i + 1] = _mm512_add_ps(b, c);
    d[i + 2] = _mm512_sub_ps(c, b);
    d[i + 3] = _mm512_sub_ps(b, e);
  }
}

// Return the lower and the upper channel of words of two channels, as fp32.
inline __m512 Lower(__m512i words) { return (__m512)_mm512_slli_epi32(words, 16); }
inline __m512 Upper(__m512i words) {
  return (__m512)_mm512_and_si512(words, _mm512_set1_epi32(static_cast<int>(0xffff0000)));
}

// Images of x, and of y with as many pixels, in patches of 2x2 results.
struct Plane {
  int64_t images, height, width, depth, outputs;
  int64_t high() const { return (height + 1) / 2; }
  int64_t wide() const { return (width + 1) / 2; }
  int64_t patches() const { return images * high() * wide(); }
  // Returns about where `patch` begins, of activations with `channels`.
  int64_t ElementsBefore(int64_t patch, int64_t channels) const {
    return images * height * width * channels / patches() * patch;
  }
};
struct Place {
  int64_t image, row, column;  // of the first of the four results
};
inline Place PlaceOf(const Plane& plane, int64_t patch) {
  const int64_t column = patch % plane.wide(), row = patch / plane.wide();
  return {row / plane.high(), row % plane.high() * 2, column * 2};
}

// As many zeros as there are channels at most.
alignas(64) inline constexpr uint16_t kZeros[8192] = {};

// Where a patch reads its pixels: from zeros around an image.
using PatchPixels = std::array<const uint16_t*, kPlaces>;
inline PatchPixels PixelsOf(const Plane& plane, const Place& place, const uint16_t* x) {
  PatchPixels from;
  for (int64_t at = 0; at < kPlaces; ++at) {
    const int64_t row = place.row + at / 4 - 1, column = place.column + at % 4 - 1;
    const bool inside = row >= 0 && row < plane.height && column >= 0 && column < plane.width;
    from[static_cast<size_t>(at)] =
        inside ? x + ((place.image * plane.height + row) * plane.width + column) * plane.depth
               : kZeros;
  }
  return from;
}

// Returns the even (half 0) or the odd ones of 32 channels.
inline __m512 HalfOf(__m512i words, int64_t half) {
  return half == 0 ? Lower(words) : Upper(words);
}
inline __attribute__((always_inline)) void LoadInput(const PatchPixels& from, int64_t channel,
                                                     int64_t half, Patch& patch) {
#pragma GCC unroll 16
  for (size_t at = 0; at < kPlaces; ++at) {
    patch[at] = HalfOf(_mm512_loadu_si512(from[at] + channel), half);
  }
  TransformInput(patch);
}

}  // namespace tutti::device::cpu
