// Pixels in memory, as the decoder leaves them for augmentation.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tutti::data {

inline constexpr int kBytesPerPixel = 4;  // R, G, B and one that means nothing: one load a pixel

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

}  // namespace tutti::data
