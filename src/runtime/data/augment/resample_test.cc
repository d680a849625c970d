// Covers: taps.cc, resample_kernel.cc, resample_avx2.cc, runtime/data/decode/jpeg/planes.cc,
// resample_band.h, resample_store.h.
#include "runtime/data/augment/resample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "runtime/data/decode/jpeg/planes.h"
#include "runtime/data/instruction_kernels_fake.h"

namespace tutti::data {
namespace {

struct SourceImage {
  std::vector<uint8_t> bytes;
  ImageView view;
  // The image that the values of torch below were computed from.
  SourceImage(int width, int height) {
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        for (int c = 0; c < 3; ++c) {
          bytes.push_back(static_cast<uint8_t>(37 * x + 91 * y + 53 * c + 7 * x * y));
        }
        bytes.push_back(0xAA);
      }
    }
    view = {bytes.data(), width, height};
  }
};

// In 0 … 255: mean 0 and stddev 1/255 undo the scaling.
const Augmentation kIdentity{.stddev = {1 / 255.0f, 1 / 255.0f, 1 / 255.0f}};

// The most that rounding changes, in levels: weights have 14 bits, and lines are rounded.
constexpr double kRounding = 1.0 / 64;

std::vector<float> Resize(const ImageView& source, const Axis& x, const Axis& y,
                          bool flip = false) {
  const Normalizer normalizer(kIdentity, PixelType::kFloat32);
  std::vector<float> out(static_cast<size_t>(x.count) * static_cast<size_t>(y.count) * 3);
  const ImageSize size{source.width, source.height};
  std::vector<uint8_t> memory;
  Resampler resampler;
  resampler.Prepare(x, y, size);
  resampler.Run(SplitIntoPlanes(source, 0, 0, size, memory), flip, normalizer, out.data());
  return out;
}

Axis Whole(int size, int out) { return {0, double(size), out, 0, out}; }

void ExpectNear(const std::vector<float>& actual, const std::vector<float>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) ASSERT_NEAR(actual[i], expected[i], kRounding) << i;
}

// torch 2.11: _upsample_bilinear2d_aa(image, {3, 4}, align_corners=False), as [H, W, C].
TEST(Resample, ShrinksAsTorchDoes) {
  ExpectNear(
      Resize(SourceImage(11, 9).view, Whole(11, 4), Whole(9, 3)),
      {112.9444f, 132.1667f, 141.3148f, 125.5375f, 133.7375f, 139.8042f, 123.7292f, 128.1958f,
       134.2625f, 118.7222f, 126.6852f, 135.8333f, 121.5267f, 142.9218f, 121.6502f, 139.0278f,
       135.6130f, 124.6130f, 139.1204f, 132.3871f, 121.3870f, 130.8107f, 135.3498f, 114.0782f,
       123.7222f, 115.6852f, 141.4259f, 129.7625f, 119.2958f, 130.1625f, 127.3708f, 125.4375f,
       126.7042f, 127.4259f, 119.9815f, 130.3148f});
}

// The same function, {4, 5}.
TEST(Resample, EnlargesAsTorchDoes) {
  ExpectNear(
      Resize(SourceImage(3, 2).view, Whole(3, 5), Whole(2, 4)),
      {0,       53,      106,     14.8f,   67.8f,   120.8f,  37,      90,      143,     59.2f,
       112.2f,  165.2f,  74,      127,     180,     22.75f,  75.75f,  128.75f, 38.25f,  91.25f,
       144.25f, 61.5f,   114.5f,  167.5f,  84.75f,  137.75f, 152.35f, 100.25f, 153.25f, 142.25f,
       68.25f,  121.25f, 174.25f, 85.15f,  138.15f, 191.15f, 110.5f,  163.5f,  216.5f,  135.85f,
       188.85f, 126.65f, 152.75f, 205.75f, 66.75f,  91,      144,     197,     108.6f,  161.6f,
       214.6f,  135,     188,     241,     161.4f,  214.4f,  113.8f,  179,     232,     29});
}

TEST(Resample, TheSameSizeIsTheImageItself) {
  const SourceImage source(6, 5);
  const std::vector<float> out = Resize(source.view, Whole(6, 6), Whole(5, 5));
  for (int y = 0; y < 5; ++y) {
    for (int x = 0; x < 6; ++x) {
      for (int c = 0; c < 3; ++c) {
        EXPECT_NEAR(out[static_cast<size_t>((y * 6 + x) * 3 + c)], source.view.row(y)[4 * x + c],
                    1e-4);
      }
    }
  }
}

TEST(Resample, AWindowIsAPartOfTheWhole) {
  const SourceImage source(40, 30);
  const std::vector<float> whole = Resize(source.view, Whole(40, 16), Whole(30, 12));
  const std::vector<float> part = Resize(source.view, {0, 40, 16, 5, 7}, {0, 30, 12, 2, 6});
  for (size_t y = 0; y < 6; ++y) {
    for (size_t i = 0; i < 7 * 3; ++i) {
      EXPECT_EQ(part[y * 21 + i], whole[(y + 2) * 48 + 15 + i]);
    }
  }
}

// A crop before the resize sees nothing of its surroundings.
TEST(Resample, ACropIsResizedAsAnImageOfItsOwn) {
  const SourceImage source(40, 30);
  std::vector<uint8_t> cut;
  for (int y = 7; y < 7 + 15; ++y) {
    cut.insert(cut.end(), source.view.row(y) + 9 * 4, source.view.row(y) + (9 + 21) * 4);
  }
  const ImageView crop{cut.data(), 21, 15};
  ExpectNear(Resize(source.view, {9, 21, 8, 0, 8}, {7, 15, 6, 0, 6}),
             Resize(crop, Whole(21, 8), Whole(15, 6)));
}

TEST(Resample, FlipMirrorsTheRows) {
  const SourceImage source(20, 10);
  const std::vector<float> plain = Resize(source.view, Whole(20, 8), Whole(10, 4));
  const std::vector<float> mirrored = Resize(source.view, Whole(20, 8), Whole(10, 4), true);
  for (size_t y = 0; y < 4; ++y) {
    for (size_t x = 0; x < 8; ++x) {
      for (size_t c = 0; c < 3; ++c) {
        EXPECT_EQ(mirrored[(y * 8 + x) * 3 + c], plain[(y * 8 + 7 - x) * 3 + c]);
      }
    }
  }
}

// A band is 16 rows and a tile 16 columns: sizes around them, in every type and layout, hold the
// same numbers, and nothing is written beside them.
TEST(Resample, TypesAndLayoutsHoldTheSameNumbers) {
  const SourceImage source(40, 30);
  std::vector<uint8_t> memory;
  const Planes planes = SplitIntoPlanes(source.view, 0, 0, {40, 30}, memory);
  for (const int width : {1, 3, 15, 16, 17, 37}) {
    for (const int height : {1, 15, 16, 17}) {
      const std::vector<float> expected = Resize(source.view, Whole(40, width), Whole(30, height));
      const auto pixels = static_cast<size_t>(width * height);
      for (const PixelLayout layout : {PixelLayout::kChannelsLast, PixelLayout::kPlanar}) {
        const auto at = [&](size_t pixel, size_t c) {
          return layout == PixelLayout::kPlanar ? c * pixels + pixel : 3 * pixel + c;
        };
        Resampler resampler;
        resampler.Prepare(Whole(40, width), Whole(30, height), {40, 30});
        std::vector<float> floats(3 * pixels + 1, -7);
        std::vector<uint16_t> halves(3 * pixels + 1, 7);
        resampler.Run(planes, false, {kIdentity, PixelType::kFloat32, layout}, floats.data());
        resampler.Run(planes, false, {kIdentity, PixelType::kBFloat16, layout}, halves.data());
        for (size_t i = 0; i < pixels; ++i) {
          for (size_t c = 0; c < 3; ++c) {
            ASSERT_EQ(floats[at(i, c)], expected[3 * i + c]) << width << "x" << height;
            ASSERT_EQ(halves[at(i, c)], ToBFloat16(expected[3 * i + c])) << width << "x" << height;
          }
        }
        ASSERT_EQ(floats.back(), -7);
        ASSERT_EQ(halves.back(), 7);
      }
    }
  }
}

// Sizes of which some make few sums and some many, to either side.
TEST(Resample, HasTheSameBitsWithEachInstructionSet) {
  const SourceImage source(230, 190);
  std::vector<uint8_t> memory;
  Planes planes = SplitIntoPlanes(source.view, 0, 0, {230, 190}, memory);
  for (const Colors colors : {Colors::kGrey, Colors::kRgb, Colors::kYCbCr}) {
    planes.colors = colors;
    for (const auto& [width, height] : {std::pair(300, 7), {100, 100}, {21, 200}, {160, 33}}) {
      for (const PixelLayout layout : {PixelLayout::kChannelsLast, PixelLayout::kPlanar}) {
        const Normalizer normalizer({.mean = {0.5f, 0.4f, 0.3f}}, PixelType::kFloat32, layout);
        std::vector<float> plain;
        for (const base::InstructionSet set : SetsOfThisProcessor()) {
          std::vector<float> out(static_cast<size_t>(3 * width * height));
          Resampler resampler(set);
          resampler.Prepare(Whole(230, width), Whole(190, height), {230, 190});
          resampler.Run(planes, true, normalizer, out.data());
          if (plain.empty()) plain = out;
          ASSERT_EQ(out, plain) << width << "x" << height << " " << static_cast<int>(set);
        }
      }
    }
  }
}

// Grey planes and planes of brightness and colour are the RGB planes of the same image.
TEST(Resample, ColoursFollowJfif) {
  std::vector<uint8_t> grey(40 * 30 + kPlanePadding), cb(grey.size(), 90), cr(grey.size(), 200);
  for (size_t i = 0; i < grey.size(); ++i) grey[i] = static_cast<uint8_t>(60 + i % 97);
  const auto plane = [](const std::vector<uint8_t>& samples) {
    return Plane{samples.data(), 40, 0, 0, {40, 30}};
  };
  Resampler resampler;
  resampler.Prepare(Whole(40, 16), Whole(30, 12), {40, 30});
  const Normalizer normalizer(kIdentity, PixelType::kFloat32);
  std::vector<float> one(16 * 12 * 3), three(one.size()), colored(one.size());
  resampler.Run({Colors::kGrey, {plane(grey)}}, false, normalizer, one.data());
  resampler.Run({Colors::kRgb, {plane(grey), plane(grey), plane(grey)}}, false, normalizer,
                three.data());
  EXPECT_EQ(one, three);
  resampler.Run({Colors::kYCbCr, {plane(grey), plane(cb), plane(cr)}}, false, normalizer,
                colored.data());
  for (size_t i = 0; i < one.size(); i += 3) {
    EXPECT_NEAR(colored[i], std::min(255.0, one[i] + 1.402 * 72), 1e-3);
    EXPECT_NEAR(colored[i + 1], one[i] + 0.344136 * 38 - 0.714136 * 72, 1e-3);
    EXPECT_NEAR(colored[i + 2], std::max(0.0, one[i] - 1.772 * 38), 1e-3);
  }
}

// Colour at half the resolution: enlarged by a triangle and resized, in one step or in two.
TEST(Resample, SmallPlanesAreEnlargedOnTheWay) {
  std::vector<uint8_t> small(20 * 30 + kPlanePadding), large(40 * 30 + kPlanePadding);
  for (size_t i = 0; i < small.size(); ++i) small[i] = static_cast<uint8_t>(4 * (i * 37 % 61));
  for (int y = 0; y < 30; ++y) {
    for (int x = 0; x < 40; ++x) {
      const int near = x / 2, far = std::clamp(x % 2 == 0 ? near - 1 : near + 1, 0, 19);
      large[static_cast<size_t>(y * 40 + x)] =
          static_cast<uint8_t>((3 * small[y * 20 + near] + small[y * 20 + far]) / 4);
    }
  }
  const Normalizer normalizer(kIdentity, PixelType::kFloat32);
  for (const Axis& x : {Whole(40, 16), Axis{3.5, 30.5, 24, 0, 24}, Whole(40, 64)}) {
    Resampler resampler;
    resampler.Prepare(x, Whole(30, 12), {40, 30});
    std::vector<float> in_one(static_cast<size_t>(x.count) * 12 * 3), in_two(in_one.size());
    resampler.Run({Colors::kGrey, {{small.data(), 20, 0, 0, {20, 30}, 2, 1}}}, false, normalizer,
                  in_one.data());
    resampler.Run({Colors::kGrey, {{large.data(), 40, 0, 0, {40, 30}}}}, false, normalizer,
                  in_two.data());
    ExpectNear(in_one, in_two);
  }
}

TEST(Resample, PairsHoldTheWeightsOfTheirSamples) {
  AxisTaps taps;
  PairTaps pairs;
  for (const Axis& axis : {Axis{0, 100, 100, 0, 100}, Axis{0, 100, 71, 0, 71},
                           Axis{0.125, 99.75, 7, 2, 3}, Axis{10, 3, 224, 0, 224}}) {
    taps.Compute(axis, 100);
    for (const bool on_grid : {false, true}) {
      pairs.Compute(taps, on_grid);
      for (size_t i = 0; i < taps.size(); ++i) {
        ASSERT_TRUE(!on_grid || (pairs.first[i] - taps.begin) % 2 == 0);
        int sum = 0;
        for (int k = 0; k < 2 * pairs.count; ++k) {
          const int32_t pair = pairs.weights[i * static_cast<size_t>(pairs.count) + k / 2];
          const int weight = k % 2 == 0 ? static_cast<int16_t>(pair) : pair >> 16;
          const int tap = pairs.first[i] + k - taps.first[i];
          const bool is_tap = tap >= 0 && tap < taps.count;
          const float exact = is_tap ? taps.weights[i * size_t(taps.count) + size_t(tap)] : 0;
          ASSERT_NEAR(weight, exact * PairTaps::kOne, 1.01);
          ASSERT_TRUE(is_tap || weight == 0);
          sum += weight;
        }
        ASSERT_EQ(sum, int{PairTaps::kOne});
      }
    }
  }
}

TEST(Resample, WeightsAddUpToOneForOddSizes) {
  AxisTaps taps;
  for (const Axis& axis : {Axis{0, 1, 5, 0, 5}, Axis{3.5, 0.25, 2, 0, 2},
                           Axis{0.125, 99.75, 7, 2, 3}, Axis{10, 3, 224, 0, 224}}) {
    taps.Compute(axis, 100);
    ASSERT_EQ(taps.size(), static_cast<size_t>(axis.count));
    for (size_t i = 0; i < taps.size(); ++i) {
      ASSERT_GE(taps.first[i], static_cast<int>(std::floor(axis.begin)));
      ASSERT_LE(taps.first[i] + taps.count, static_cast<int>(std::ceil(axis.begin + axis.extent)));
      float sum = 0;
      for (int k = 0; k < taps.count; ++k) {
        sum += taps.weights[i * static_cast<size_t>(taps.count) + static_cast<size_t>(k)];
      }
      EXPECT_NEAR(sum, 1, 1e-5);
    }
  }
}

}  // namespace
}  // namespace tutti::data
