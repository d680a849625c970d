#include "runtime/data/augment/normalize.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace tutti::data {
namespace {

// One pixel of four floats; compilers know it as one register.
typedef float FloatPixel __attribute__((vector_size(16)));
typedef uint32_t WordPixel __attribute__((vector_size(16)));
typedef uint16_t HalfPixel __attribute__((vector_size(8)));

FloatPixel Load(const float* four) {
  FloatPixel pixel;
  std::memcpy(&pixel, four, sizeof pixel);
  return pixel;
}

}  // namespace

Normalizer::Normalizer(const Augmentation& augmentation, PixelType type)
    : type_(type), scale_{}, bias_{} {
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

template <typename Value>
void Normalizer::CopyRow(const ImageView& source, int left, int y, int width, bool flip,
                         Value* out) const {
  const auto& table = [this]() -> const auto& {
    if constexpr (std::is_same_v<Value, float>)
      return float_table_;
    else
      return bfloat16_table_;
  }
  ();
  const int step = flip ? -3 : 3;
  Value* to = flip ? out + (width - 1) * 3 : out;
  const bool inside = y >= 0 && y < source.height;
  // [first, last) of the window's columns lie in the source.
  const int first = inside ? std::clamp(-left, 0, width) : width;
  const int last = inside ? std::clamp(source.width - left, first, width) : width;
  const auto black = [&](int count) {
    for (int i = 0; i < count; ++i, to += step) {
      for (size_t c = 0; c < 3; ++c) to[c] = table[c][0];
    }
  };
  black(first);
  if (first < last) {
    const uint8_t* from = source.row(y) + (left + first) * kBytesPerPixel;
    for (int i = first; i < last; ++i, to += step, from += kBytesPerPixel) {
      for (size_t c = 0; c < 3; ++c) to[c] = table[c][from[c]];
    }
  }
  black(width - last);
}

void Normalizer::CopyWindow(const ImageView& source, int left, int top, ImageSize window, bool flip,
                            void* out) const {
  for (int y = 0; y < window.height; ++y) {
    const size_t offset = static_cast<size_t>(y) * static_cast<size_t>(window.width) * 3;
    if (type_ == PixelType::kFloat32) {
      CopyRow(source, left, top + y, window.width, flip, static_cast<float*>(out) + offset);
    } else {
      CopyRow(source, left, top + y, window.width, flip, static_cast<uint16_t*>(out) + offset);
    }
  }
}

void Normalizer::StoreRow(const float* pixels, int width, void* out) const {
  const FloatPixel scale = Load(scale_), bias = Load(bias_);
  char* to = static_cast<char*>(out);
  if (type_ == PixelType::kFloat32) {
    for (int x = 0; x < width; ++x, pixels += 4, to += 12) {
      const FloatPixel value = Load(pixels) * scale + bias;
      std::memcpy(to, &value, 12);
    }
  } else {
    for (int x = 0; x < width; ++x, pixels += 4, to += 6) {
      const FloatPixel value = Load(pixels) * scale + bias;
      // ToBFloat16 of four at once.
      WordPixel bits;
      std::memcpy(&bits, &value, sizeof bits);
      const auto halves =
          __builtin_convertvector((bits + 0x7FFF + (bits >> 16 & 1)) >> 16, HalfPixel);
      std::memcpy(to, &halves, 6);
    }
  }
}

}  // namespace tutti::data
