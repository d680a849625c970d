// Normalizer does the last step of a sample: 8-bit or resized pixels become normalised values in
// the batch's type and layout.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "runtime/data/image.h"
#include "runtime/data/loader.h"

namespace tutti::data {

// Returns the nearest bfloat16, halves to even. Values are finite here.
inline uint16_t ToBFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

inline size_t BytesOf(PixelType type) { return type == PixelType::kFloat32 ? 4 : 2; }

// Where normalised pixels go, and how: value = p * scale + bias of each colour.
struct NormalizedTarget {
  PixelType type;
  PixelLayout layout;
  char* out;
  size_t pixel_bytes, row_bytes;  // from one pixel, and row, to the next
  size_t plane_bytes;             // from one colour to the next
  float scale[3], bias[3];
};

// Calls run(offset, bytes) for each stretch of memory that holds values of `region`, as offsets
// from target.out.
template <typename Run>
void ForEachRun(const NormalizedTarget& target, const Region& region, const Run& run) {
  const bool planar = target.layout == PixelLayout::kPlanar;
  const size_t bytes = static_cast<size_t>(region.width) * target.pixel_bytes;
  for (size_t plane = 0; plane < (planar ? 3 : 1); ++plane) {
    for (int y = region.top; y < region.top + region.height; ++y) {
      run(plane * target.plane_bytes + static_cast<size_t>(y) * target.row_bytes +
              static_cast<size_t>(region.left) * target.pixel_bytes,
          bytes);
    }
  }
}

// Immutable; thread-safe. Computes (p / 255 - mean) / stddev in fp32, in this order, as
// torchvision's ToTensor and Normalize do: an unresized image has the same bits as theirs.
class Normalizer {
 public:
  Normalizer(const Augmentation& augmentation, PixelType type,
             PixelLayout layout = PixelLayout::kChannelsLast);

  // Returns the target for an image of this size at `out`.
  NormalizedTarget Target(int width, int height, void* out) const;

  // Copies a width x height window of `source`, whose top left pixel is (left, top) of it; black
  // outside of it; mirrored if `flip`. `out` takes height * width * 3 values.
  void CopyWindow(const ImageView& source, int left, int top, ImageSize window, bool flip,
                  void* out) const;

  // Makes a region of a width x height image at `out` the mean, which is 0.
  void Erase(ImageSize image, const Region& region, void* out) const;

 private:
  template <typename Value>
  void CopyRow(const ImageView& source, int left, int y, int width, bool flip,
               const NormalizedTarget& target) const;

  PixelType type_;
  PixelLayout layout_;
  float scale_[3], bias_[3];  // of resized pixels
  std::array<std::array<float, 256>, 3> float_table_;
  std::array<std::array<uint16_t, 256>, 3> bfloat16_table_;
};

}  // namespace tutti::data
