#include "runtime/data/augment/normalize.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

namespace tutti::data {

Normalizer::Normalizer(const Augmentation& augmentation, PixelType type, PixelLayout layout)
    : type_(type), layout_(layout) {
  for (size_t c = 0; c < 3; ++c) {
    const float mean = augmentation.mean[c], stddev = augmentation.stddev[c];
    scale_[c] = static_cast<float>(1 / (255.0 * stddev));
    bias_[c] = static_cast<float>(-double{mean} / stddev);
    for (size_t p = 0; p < 256; ++p) {
      const float value = (static_cast<float>(p) / 255.0f - mean) / stddev;
      float_table_[c][p] = value;
      bfloat16_table_[c][p] = ToBFloat16(value);
    }
  }
}

NormalizedTarget Normalizer::Target(int width, int height, void* out) const {
  const size_t value = BytesOf(type_);
  const bool planar = layout_ == PixelLayout::kPlanar;
  NormalizedTarget target{.type = type_, .layout = layout_, .out = static_cast<char*>(out)};
  target.pixel_bytes = planar ? value : 3 * value;
  target.row_bytes = target.pixel_bytes * static_cast<size_t>(width);
  target.plane_bytes = planar ? target.row_bytes * static_cast<size_t>(height) : value;
  std::copy_n(scale_, 3, target.scale);
  std::copy_n(bias_, 3, target.bias);
  return target;
}

template <typename Value>
void Normalizer::CopyRow(const ImageView& source, int left, int y, int width, bool flip,
                         const NormalizedTarget& target) const {
  const auto& table = [this]() -> const auto& {
    if constexpr (std::is_same_v<Value, float>)
      return float_table_;
    else
      return bfloat16_table_;
  }
  ();
  const auto pixel = static_cast<std::ptrdiff_t>(target.pixel_bytes / sizeof(Value));
  const auto plane = static_cast<std::ptrdiff_t>(target.plane_bytes / sizeof(Value));
  const std::ptrdiff_t step = flip ? -pixel : pixel;
  Value* to = reinterpret_cast<Value*>(target.out) + (flip ? (width - 1) * pixel : 0);
  const bool inside = y >= 0 && y < source.height;
  // [first, last) of the window's columns lie in the source.
  const int first = inside ? std::clamp(-left, 0, width) : width;
  const int last = inside ? std::clamp(source.width - left, first, width) : width;
  const auto black = [&](int count) {
    for (int i = 0; i < count; ++i, to += step) {
      for (size_t c = 0; c < 3; ++c) to[static_cast<std::ptrdiff_t>(c) * plane] = table[c][0];
    }
  };
  black(first);
  if (first < last) {
    const uint8_t* from = source.row(y) + (left + first) * kBytesPerPixel;
    for (int i = first; i < last; ++i, to += step, from += kBytesPerPixel) {
      for (size_t c = 0; c < 3; ++c) {
        to[static_cast<std::ptrdiff_t>(c) * plane] = table[c][from[c]];
      }
    }
  }
  black(width - last);
}

void Normalizer::CopyWindow(const ImageView& source, int left, int top, ImageSize window, bool flip,
                            void* out) const {
  NormalizedTarget target = Target(window.width, window.height, out);
  for (int y = 0; y < window.height; ++y, target.out += target.row_bytes) {
    if (type_ == PixelType::kFloat32) {
      CopyRow<float>(source, left, top + y, window.width, flip, target);
    } else {
      CopyRow<uint16_t>(source, left, top + y, window.width, flip, target);
    }
  }
}

void Normalizer::Erase(ImageSize image, const Region& region, void* out) const {
  const NormalizedTarget target = Target(image.width, image.height, out);
  ForEachRun(target, region,
             [&](size_t offset, size_t bytes) { std::memset(target.out + offset, 0, bytes); });
}

}  // namespace tutti::data
