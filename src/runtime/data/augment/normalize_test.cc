#include "runtime/data/augment/normalize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace tutti::data {
namespace {

TEST(BFloat16, RoundsToTheNearestAndHalvesToEven) {
  EXPECT_EQ(ToBFloat16(1.0f), 0x3F80);
  EXPECT_EQ(ToBFloat16(-2.0f), 0xC000);
  EXPECT_EQ(ToBFloat16(1.0f + 0x1p-8f), 0x3F80);             // a half: down to even
  EXPECT_EQ(ToBFloat16(1.0f + 3 * 0x1p-8f), 0x3F82);         // a half: up to even
  EXPECT_EQ(ToBFloat16(1.0f + 0x1p-8f + 0x1p-20f), 0x3F81);  // above a half
  EXPECT_EQ(ToBFloat16(0.0f), 0);
}

const Augmentation kCifar{.height = 3,
                          .width = 4,
                          .mean = {0.4914f, 0.4822f, 0.4465f},
                          .stddev = {0.2470f, 0.2435f, 0.2616f}};

// A 4 x 3 image whose bytes are all different.
struct Source {
  std::vector<uint8_t> bytes;
  ImageView view;
  Source() {
    for (int i = 0; i < 4 * 3 * kBytesPerPixel; ++i) bytes.push_back(static_cast<uint8_t>(5 * i));
    view = {bytes.data(), 4, 3};
  }
  // What the formula gives for the pixel at (x, y), black outside.
  float Value(int x, int y, int c) const {
    const bool inside = x >= 0 && x < 4 && y >= 0 && y < 3;
    const float p = inside ? view.row(y)[x * kBytesPerPixel + c] : 0;
    return (p / 255.0f - kCifar.mean[c]) / kCifar.stddev[c];
  }
};

TEST(Normalizer, CopiesAnyWindowWithBlackOutside) {
  const Source source;
  const Normalizer normalizer(kCifar, PixelType::kFloat32);
  std::vector<float> out(4 * 3 * 3);
  for (int left = -5; left <= 5; ++left) {
    for (int top = -4; top <= 4; ++top) {
      for (const bool flip : {false, true}) {
        normalizer.CopyWindow(source.view, left, top, {4, 3}, flip, out.data());
        for (int y = 0; y < 3; ++y) {
          for (int x = 0; x < 4; ++x) {
            for (int c = 0; c < 3; ++c) {
              const int from = flip ? 3 - x : x;
              ASSERT_EQ(out[static_cast<size_t>((y * 4 + x) * 3 + c)],
                        source.Value(left + from, top + y, c));
            }
          }
        }
      }
    }
  }
}

TEST(Normalizer, BFloat16IsTheRoundedFloat) {
  const Source source;
  std::vector<float> floats(4 * 3 * 3);
  std::vector<uint16_t> halves(4 * 3 * 3);
  Normalizer(kCifar, PixelType::kFloat32)
      .CopyWindow(source.view, 1, -1, {4, 3}, true, floats.data());
  Normalizer(kCifar, PixelType::kBFloat16)
      .CopyWindow(source.view, 1, -1, {4, 3}, true, halves.data());
  for (size_t i = 0; i < floats.size(); ++i) EXPECT_EQ(halves[i], ToBFloat16(floats[i]));
}

TEST(Normalizer, PlanarHoldsTheSameNumbersByColour) {
  const Source source;
  for (const bool flip : {false, true}) {
    std::vector<float> last(36), planar(36);
    Normalizer(kCifar, PixelType::kFloat32)
        .CopyWindow(source.view, 1, -1, {4, 3}, flip, last.data());
    Normalizer(kCifar, PixelType::kFloat32, PixelLayout::kPlanar)
        .CopyWindow(source.view, 1, -1, {4, 3}, flip, planar.data());
    for (size_t i = 0; i < 12; ++i) {
      for (size_t c = 0; c < 3; ++c) EXPECT_EQ(planar[12 * c + i], last[3 * i + c]);
    }
  }
}

TEST(Normalizer, ErasesARegionAndNothingBesideIt) {
  for (const PixelType type : {PixelType::kFloat32, PixelType::kBFloat16}) {
    for (const PixelLayout layout : {PixelLayout::kChannelsLast, PixelLayout::kPlanar}) {
      const Normalizer normalizer(kCifar, type, layout);
      const size_t value = BytesOf(type);
      std::vector<uint8_t> out(4 * 3 * 3 * value, 7);
      normalizer.Erase({4, 3}, {1, 1, 2, 2}, out.data());
      for (size_t i = 0; i < out.size(); ++i) {
        const size_t at = i / value, pixel = layout == PixelLayout::kPlanar ? at % 12 : at / 3;
        const size_t x = pixel % 4, y = pixel / 4;
        ASSERT_EQ(out[i], x >= 1 && x < 3 && y >= 1 ? 0 : 7) << i;
      }
    }
  }
}

}  // namespace
}  // namespace tutti::data
