#include "runtime/comm/collective/compression/encoding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace tutti::comm {
namespace {

constexpr Encoding kAll[] = {Encoding::kFloat16, Encoding::kBFloat16, Encoding::kInt8};
constexpr size_t kCounts[] = {0, 1, 3, 255, 256, 257, 511, 512, 1000, 4099};

std::vector<float> Normal(size_t count, float width, unsigned seed = 1) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0, width);
  std::vector<float> values(count);
  for (float& value : values) value = normal(generator);
  return values;
}

std::vector<float> ThereAndBack(Encoding encoding, const std::vector<float>& values,
                                float* residual = nullptr) {
  std::vector<std::byte> bytes(EncodedBytes(encoding, values.size()));
  Encode(encoding, values.data(), residual, values.size(), bytes.data());
  std::vector<float> back(values.size(), 99.0f);
  Decode(encoding, bytes.data(), values.size(), back.data());
  return back;
}

float LargestOfBlock(const std::vector<float>& values, size_t i) {
  const size_t begin = i / kEncodingBlock * kEncodingBlock;
  float largest = 0;
  for (size_t k = begin; k < std::min(values.size(), begin + kEncodingBlock); ++k) {
    largest = std::max(largest, std::abs(values[k]));
  }
  return largest;
}

float Bound(Encoding encoding, const std::vector<float>& values, size_t i) {
  if (encoding == Encoding::kInt8) return LargestOfBlock(values, i) / 254 * 1.0001f;
  const float unit = encoding == Encoding::kFloat16 ? 0x1p-11f : 0x1p-8f;
  return std::abs(values[i]) * unit + 0x1p-25f;
}

TEST(Encoding, AnErrorIsAtMostHalfAStepOfItsBlock) {
  for (const Encoding encoding : kAll) {
    for (const size_t count : kCounts) {
      const std::vector<float> values = Normal(count, 0.01f);
      const std::vector<float> back = ThereAndBack(encoding, values);
      for (size_t i = 0; i < count; ++i) {
        ASSERT_LE(std::abs(back[i] - values[i]), Bound(encoding, values, i)) << count << " " << i;
      }
    }
  }
}

TEST(Encoding, TakesAboutAQuarterOrHalfOfTheBytes) {
  EXPECT_EQ(EncodedBytes(Encoding::kInt8, 0), 0);
  EXPECT_EQ(EncodedBytes(Encoding::kInt8, 1), 5);
  EXPECT_EQ(EncodedBytes(Encoding::kInt8, 256), 260);
  EXPECT_EQ(EncodedBytes(Encoding::kInt8, 257), 265);
  EXPECT_EQ(EncodedBytes(Encoding::kFloat16, 7), 14);
}

TEST(Encoding, KeepsWhatItCanHoldExactly) {
  std::vector<float> values = {0, -0.0f, 127, -127, 1, -64, 5};
  for (const Encoding encoding : kAll) {
    EXPECT_EQ(ThereAndBack(encoding, values), values);
    EXPECT_EQ(ThereAndBack(encoding, std::vector<float>(300, 0.0f)), std::vector<float>(300, 0.0f));
  }
}

TEST(Encoding, ALargeValueDoesNotTouchOtherBlocks) {
  std::vector<float> values(3 * kEncodingBlock, 1.0f);
  values[kEncodingBlock] = 1e30f;
  const std::vector<float> back = ThereAndBack(Encoding::kInt8, values);
  EXPECT_NEAR(back[0], 1, 1e-6);
  EXPECT_NEAR(back[kEncodingBlock], 1e30f, 1e24);
  EXPECT_EQ(back[kEncodingBlock + 1], 0);
  EXPECT_NEAR(back[2 * kEncodingBlock], 1, 1e-6);
}

TEST(Encoding, TheResidualIsWhatWasLostAndComesWithTheNextOne) {
  for (const Encoding encoding : kAll) {
    const std::vector<float> values = Normal(777, 1.0f);
    std::vector<float> residual = Normal(777, 0.01f, 2);
    std::vector<float> given(777);
    for (size_t i = 0; i < given.size(); ++i) given[i] = values[i] + residual[i];
    const std::vector<float> back = ThereAndBack(encoding, values, residual.data());
    for (size_t i = 0; i < given.size(); ++i) ASSERT_EQ(residual[i], given[i] - back[i]);
  }
}

TEST(Encoding, WhatIsNotFiniteShowsAndLeavesNoResidual) {
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    for (const Encoding encoding : kAll) {
      std::vector<float> values(600, 0.3f), residual(600, 0.0f);
      values[10] = bad;
      const std::vector<float> back = ThereAndBack(encoding, values, residual.data());
      EXPECT_FALSE(std::isfinite(back[10]));
      EXPECT_EQ(residual[10], 0);
      EXPECT_EQ(std::isnan(back[11]), encoding == Encoding::kInt8);
      EXPECT_TRUE(std::isfinite(back[kEncodingBlock])) << "another block";
      for (const float lost : residual) ASSERT_TRUE(std::isfinite(lost));
    }
  }
}

TEST(Encoding, BeyondHalfsRangeIsInfinityWithoutResidual) {
  std::vector<float> residual(1, 0.0f);
  EXPECT_EQ(ThereAndBack(Encoding::kFloat16, {1e6f}, residual.data())[0], INFINITY);
  EXPECT_EQ(residual[0], 0);
}

TEST(Encoding, HoldsTheLargestAndTheSmallestNumbers) {
  constexpr float kMost = std::numeric_limits<float>::max();
  const std::vector<float> large = ThereAndBack(Encoding::kInt8, {kMost, -kMost / 2});
  EXPECT_NEAR(large[0] / kMost, 1, 1e-5);
  EXPECT_NEAR(large[1] / kMost, -0.5, 0.004);
  std::vector<float> residual(2, 0.0f);
  const std::vector<float> tiny = {std::numeric_limits<float>::denorm_min(), -1e-35f};
  EXPECT_EQ(ThereAndBack(Encoding::kInt8, tiny, residual.data()), std::vector<float>(2, 0.0f));
  EXPECT_EQ(residual, tiny) << "not lost: it comes when there is more of it";
}

TEST(Encoding, DecodesFromUnalignedBytesAndAdds) {
  for (const Encoding encoding : kAll) {
    const std::vector<float> values = Normal(515, 1.0f), back = ThereAndBack(encoding, values);
    std::vector<std::byte> bytes(EncodedBytes(encoding, values.size()) + 3);
    Encode(encoding, values.data(), nullptr, values.size(), bytes.data() + 3);
    std::vector<float> sum(515, 2.0f);
    DecodeAndAdd(encoding, bytes.data() + 3, values.size(), sum.data());
    for (size_t i = 0; i < sum.size(); ++i) ASSERT_EQ(sum[i], 2.0f + back[i]);
  }
}

}  // namespace
}  // namespace tutti::comm
