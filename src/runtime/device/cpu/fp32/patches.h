// Cuts images into patches of 6x6 pixels, of which Winograd's F(4x4, 3x3) makes 4x4 results.
#pragma once

#include <array>
#include <cstdint>

#include "runtime/device/cpu/fp32/kernels.h"

namespace tutti::device::cpu::fp32 {

// Floats that keep the places of a patch, which are written at once, from meeting in one set of the
// first cache.
constexpr int64_t kApart = 16;

// Images of `depth` channels, and of `results` channels with as many pixels.
struct Plane {
  int64_t images, height, width, depth, results;
  int64_t high() const { return (height + kResultSide - 1) / kResultSide; }
  int64_t wide() const { return (width + kResultSide - 1) / kResultSide; }
  int64_t patches() const { return images * high() * wide(); }
};

// Zeros around an image; as many as there are channels at most.
alignas(64) inline constexpr float kZeros[8192] = {};

// Returns the pixels of a square of `kSide`, from `border` above and left of a patch's first result
// on; `outside` where there is none.
template <int64_t kSide, typename Float>
std::array<Float*, kSide * kSide> PixelsOf(const Plane& plane, int64_t patch, int64_t border,
                                           int64_t channels, Float* images, Float* outside) {
  const int64_t line = patch / plane.wide();
  const int64_t image = line / plane.high(), top = line % plane.high() * kResultSide - border;
  const int64_t left = patch % plane.wide() * kResultSide - border;
  std::array<Float*, kSide * kSide> pixels;
  for (int64_t i = 0; i < kSide * kSide; ++i) {
    const int64_t row = top + i / kSide, column = left + i % kSide;
    const bool inside = row >= 0 && row < plane.height && column >= 0 && column < plane.width;
    pixels[static_cast<size_t>(i)] =
        inside ? images + ((image * plane.height + row) * plane.width + column) * channels
               : outside;
  }
  return pixels;
}

inline auto InputPixels(const Plane& plane, int64_t patch, const float* x) {
  return PixelsOf<kPatchSide, const float>(plane, patch, 1, plane.depth, x, kZeros);
}
// Returns null outside.
inline auto ResultPixels(const Plane& plane, int64_t patch, float* y) {
  return PixelsOf<kResultSide, float>(plane, patch, 0, plane.results, y, nullptr);
}
inline auto GradientPixels(const Plane& plane, int64_t patch, const float* dy) {
  return PixelsOf<kResultSide, const float>(plane, patch, 0, plane.results, dy, kZeros);
}

}  // namespace tutti::device::cpu::fp32
