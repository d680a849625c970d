// Defines pixels in memory, as the decoder leaves them for augmentation.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tutti::data {

inline constexpr int kBytesPerPixel = 4;  // R, G, B and one that means nothing: one load a pixel

// Larger images are refused: 64 Mi pixels is beyond ImageNet's largest, and bounds what a hostile
// file can make a reader allocate.
inline constexpr int64_t kMaxPixels = int64_t{1} << 26;

struct ImageSize {
  int width = 0;
  int height = 0;
  bool operator==(const ImageSize&) const = default;
};

// A rectangle of whole pixels.
struct Region {
  int left = 0;
  int top = 0;
  int width = 0;
  int height = 0;
};

// Rows of packed 4-byte pixels; does not own them.
struct ImageView {
  const uint8_t* pixels = nullptr;
  int width = 0;
  int height = 0;
  const uint8_t* row(int y) const {
    return pixels + static_cast<size_t>(y) * static_cast<size_t>(width) * kBytesPerPixel;
  }
};

// One component of an image, at a resolution of its own: JPEG keeps colour at half the image's.
// Does not own its samples. The memory after the last sample may be read up to kPlanePadding bytes
// further, never used.
struct Plane {
  const uint8_t* samples = nullptr;  // the first that is held
  size_t stride = 0;                 // bytes from one row to the next
  int left = 0, top = 0;             // where it lies in the whole plane
  ImageSize whole;                   // of the plane, in samples: what lies beyond repeats the edge
  int across = 1, down = 1;          // pixels of the image per sample

  // Returns the row `y` of the whole plane, from its column `x` on. Both are held.
  const uint8_t* at(int x, int y) const {
    return samples + static_cast<size_t>(y - top) * stride + (x - left);
  }
};

inline constexpr size_t kPlanePadding = 64;

enum class Colors { kGrey, kRgb, kYCbCr };  // 1, 3 and 3 planes; YCbCr as in JFIF

// A part of an image by its components; what it views is another's.
struct Planes {
  Colors colors = Colors::kRgb;
  Plane plane[3];
  int count() const { return colors == Colors::kGrey ? 1 : 3; }
};

}  // namespace tutti::data
