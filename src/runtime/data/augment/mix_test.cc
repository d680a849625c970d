#include "runtime/data/augment/mix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

namespace tutti::data {
namespace {

RandomStream DrawOf(int64_t step) { return {1, RandomStream::Purpose::kMixing, 0, step}; }

TEST(Mix, SharesHaveTheMomentsOfTheBetaDistribution) {
  for (const double alpha : {0.05, 0.2, 1.0, 4.0}) {
    constexpr int kDraws = 20000;
    double sum = 0, squares = 0;
    for (int i = 0; i < kDraws; ++i) {
      const double own = DrawMix({.mixup = alpha}, {32, 32}, DrawOf(i)).own;
      ASSERT_GE(own, 0);
      ASSERT_LE(own, 1);
      sum += own;
      squares += (own - 0.5) * (own - 0.5);
    }
    const double variance = 1 / (4 * (2 * alpha + 1));
    EXPECT_NEAR(sum / kDraws, 0.5, 4 * std::sqrt(variance / kDraws)) << alpha;
    EXPECT_NEAR(squares / kDraws, variance, 0.03 * variance + 0.002) << alpha;
  }
}

TEST(Mix, AShareBelowOneIsOfUniformDensityAtAlphaOne) {
  std::vector<int> tenths(10);
  for (int i = 0; i < 20000; ++i) {
    const double own = DrawMix({.mixup = 1}, {32, 32}, DrawOf(i)).own;
    ++tenths[static_cast<size_t>(std::min(9.0, own * 10))];
  }
  for (const int count : tenths) EXPECT_NEAR(count, 2000, 180);  // 4 standard deviations
}

TEST(Mix, ACutLiesInTheImageAndIsTheOthersShare) {
  const ImageSize size{40, 30};
  for (int i = 0; i < 2000; ++i) {
    const Mix mix = DrawMix({.cutmix = 1}, size, DrawOf(i));
    ASSERT_GE(mix.cut.left, 0);
    ASSERT_GE(mix.cut.top, 0);
    ASSERT_LE(mix.cut.left + mix.cut.width, 40);
    ASSERT_LE(mix.cut.top + mix.cut.height, 30);
    ASSERT_NEAR(1 - mix.own, mix.cut.width * mix.cut.height / 1200.0, 1e-6);
  }
}

TEST(Mix, WithBothAStepTakesOneOfTheTwo) {
  int cuts = 0;
  for (int i = 0; i < 1000; ++i) {
    cuts += DrawMix({.mixup = 1, .cutmix = 1}, {32, 32}, DrawOf(i)).cut.width > 0;
  }
  EXPECT_NEAR(cuts, 500, 80);
  EXPECT_EQ(DrawMix({}, {32, 32}, DrawOf(0)).own, 1);
}

// Values in the type and layout of an image of 5 x 4 pixels, colour by colour.
constexpr ImageSize kSize{5, 4};

struct NormalizedImage {
  PixelType type;
  PixelLayout layout;
  std::vector<float> floats = std::vector<float>(60);
  std::vector<uint16_t> halves = std::vector<uint16_t>(60);

  void* memory() {
    return type == PixelType::kFloat32 ? static_cast<void*>(floats.data()) : halves.data();
  }
  static size_t Index(PixelLayout layout, int x, int y, int c) {
    return static_cast<size_t>(layout == PixelLayout::kPlanar ? (c * 4 + y) * 5 + x
                                                              : (y * 5 + x) * 3 + c);
  }
  void Fill(float first) {
    std::iota(floats.begin(), floats.end(), first);
    for (size_t i = 0; i < 60; ++i) halves[i] = ToBFloat16(floats[i]);
  }
  float at(int x, int y, int c) const {
    const size_t i = Index(layout, x, y, c);
    return type == PixelType::kFloat32 ? floats[i]
                                       : std::bit_cast<float>(uint32_t{halves[i]} << 16);
  }
};

TEST(Mix, PairsAreBlendedOrChangePlacesInEveryTypeAndLayout) {
  const Mix blend{.own = 0.75f}, cut{.own = 0.7f, .cut = {1, 2, 3, 2}};
  for (const PixelType type : {PixelType::kFloat32, PixelType::kBFloat16}) {
    for (const PixelLayout layout : {PixelLayout::kChannelsLast, PixelLayout::kPlanar}) {
      const Normalizer normalizer({.height = 4, .width = 5}, type, layout);
      NormalizedImage a{type, layout}, b{type, layout};
      for (const Mix& mix : {blend, cut}) {
        a.Fill(0), b.Fill(100);
        const NormalizedImage was_a = a, was_b = b;
        MixPair(mix, normalizer, kSize, a.memory(), b.memory());
        for (int i = 0; i < 60; ++i) {
          const int x = i % 5, y = i / 5 % 4, c = i / 20;
          const bool inside = x >= 1 && x < 4 && y >= 2;
          const float own = mix.cut.width == 0 ? 0.75f : inside ? 0 : 1;
          const auto expected = [&](const NormalizedImage& self, const NormalizedImage& other) {
            const float value = own * self.at(x, y, c) + (1 - own) * other.at(x, y, c);
            return type == PixelType::kFloat32
                       ? value
                       : std::bit_cast<float>(uint32_t{ToBFloat16(value)} << 16);
          };
          ASSERT_EQ(a.at(x, y, c), expected(was_a, was_b)) << x << " " << y << " " << c;
          ASSERT_EQ(b.at(x, y, c), expected(was_b, was_a)) << x << " " << y << " " << c;
        }
      }
    }
  }
}

TEST(Mix, AlphasThatCannotBeAreRefused) {
  EXPECT_TRUE(Validate(Mixing{}).ok());
  EXPECT_TRUE(Validate(Mixing{.mixup = 0.2, .cutmix = 1}).ok());
  EXPECT_FALSE(Validate(Mixing{.mixup = -1}).ok());
  EXPECT_FALSE(Validate(Mixing{.cutmix = 1e-9}).ok());
  EXPECT_FALSE(Validate(Mixing{.cutmix = NAN}).ok());
}

}  // namespace
}  // namespace tutti::data
