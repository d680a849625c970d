#include "runtime/comm/collective/reduction/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tutti::comm {
namespace {

// By the definition: sign, exponent, mantissa.
double HalfByDefinition(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int mantissa = bits & 1023;
  double value =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  if (exponent == 31) value = mantissa == 0 ? INFINITY : NAN;
  return bits & 0x8000 ? -value : value;
}

TEST(Half, EveryHalfBecomesTheFloatOfTheSameValueAndComesBack) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = HalfToFloat(static_cast<uint16_t>(bits));
    const double expected = HalfByDefinition(static_cast<uint16_t>(bits));
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_TRUE(std::isnan(HalfToFloat(FloatToHalf(value)))) << bits;
    } else {
      ASSERT_EQ(value, expected) << bits;
      ASSERT_EQ(FloatToHalf(value), bits);
    }
  }
}

TEST(Half, RoundsToTheNearestAndTiesToEven) {
  for (uint32_t bits = 0; bits < 0x7c00 - 1; ++bits) {
    const float low = HalfToFloat(static_cast<uint16_t>(bits));
    const float high = HalfToFloat(static_cast<uint16_t>(bits + 1));
    const float middle = low + (high - low) / 2;
    ASSERT_EQ(FloatToHalf(middle), bits + (bits & 1));
    ASSERT_EQ(FloatToHalf(std::nextafter(middle, 0.0f)), bits);
    ASSERT_EQ(FloatToHalf(std::nextafter(middle, INFINITY)), bits + 1);
    ASSERT_EQ(FloatToHalf(-middle), 0x8000 + bits + (bits & 1));
  }
}

TEST(Half, WhatIsTooLargeBecomesInfinity) {
  EXPECT_EQ(FloatToHalf(65519.996f), 0x7bff);
  EXPECT_EQ(FloatToHalf(65520.0f), 0x7c00);
  EXPECT_EQ(FloatToHalf(-1e30f), 0xfc00);
  EXPECT_EQ(FloatToHalf(INFINITY), 0x7c00);
}

TEST(BFloat16, RoundsToTheNearestAndTiesToEven) {
  EXPECT_EQ(FloatToBFloat16(1.0f), 0x3f80);
  EXPECT_EQ(FloatToBFloat16(1.00390625f), 0x3f80);  // half-way, down to even
  EXPECT_EQ(FloatToBFloat16(1.01171875f), 0x3f82);  // half-way, up to even
  EXPECT_EQ(FloatToBFloat16(std::nextafter(1.00390625f, 2.0f)), 0x3f81);
  EXPECT_EQ(FloatToBFloat16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_TRUE(std::isnan(BFloat16ToFloat(FloatToBFloat16(NAN))));
  EXPECT_TRUE(std::isnan(BFloat16ToFloat(FloatToBFloat16(std::bit_cast<float>(0x7f800001u)))));
}

TEST(BFloat16, EveryOneComesBack) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = BFloat16ToFloat(static_cast<uint16_t>(bits));
    ASSERT_TRUE(std::isnan(value) || FloatToBFloat16(value) == bits) << bits;
  }
}

}  // namespace
}  // namespace tutti::comm
