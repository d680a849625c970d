#include "runtime/comm/collective/reduction/reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace tutti::comm {
namespace {

template <typename T>
T Reduce(DataType type, ReduceOp op, T incoming, T accumulator, bool last = true, int ranks = 2) {
  Reduction{type, op, ranks}.Apply(&accumulator, &incoming, 1, last);
  return accumulator;
}

TEST(Reduction, IntegersWrapAround) {
  constexpr int32_t kMax = std::numeric_limits<int32_t>::max();
  EXPECT_EQ(Reduce<int32_t>(DataType::kInt32, ReduceOp::kSum, kMax, 1),
            std::numeric_limits<int32_t>::min());
  EXPECT_EQ(Reduce<int64_t>(DataType::kInt64, ReduceOp::kProduct, int64_t{1} << 62, 4), 0);
  EXPECT_EQ(Reduce<uint8_t>(DataType::kUint8, ReduceOp::kSum, 200, 100), 44);
  EXPECT_EQ(Reduce<int16_t>(DataType::kInt16, ReduceOp::kSum, 32767, 1), -32768);
  EXPECT_EQ(Reduce<int16_t>(DataType::kInt16, ReduceOp::kProduct, 300, 300), 24464);
  EXPECT_EQ(Reduce<int8_t>(DataType::kInt8, ReduceOp::kSum, 127, 1), -128);
}

TEST(Reduction, ABoolIsTrueWhateverItsBits) {
  const auto reduce = [](ReduceOp op, uint8_t a, uint8_t b) {
    return Reduce<uint8_t>(DataType::kBool, op, a, b);
  };
  for (const ReduceOp either : {ReduceOp::kSum, ReduceOp::kMax}) {
    EXPECT_EQ(reduce(either, 2, 0), 1);
    EXPECT_EQ(reduce(either, 255, 255), 1);
    EXPECT_EQ(reduce(either, 0, 0), 0);
  }
  for (const ReduceOp both : {ReduceOp::kProduct, ReduceOp::kMin}) {
    EXPECT_EQ(reduce(both, 2, 4), 1);
    EXPECT_EQ(reduce(both, 2, 0), 0);
  }
}

TEST(Reduction, AMeanDividesOnceInTheLastAdditionAndIntegersTowardZero) {
  EXPECT_EQ(Reduce<float>(DataType::kFloat32, ReduceOp::kMean, 3, 4, false), 7);
  EXPECT_EQ(Reduce<float>(DataType::kFloat32, ReduceOp::kMean, 3, 4, true), 3.5f);
  EXPECT_EQ(Reduce<int32_t>(DataType::kInt32, ReduceOp::kMean, -3, -4, true), -3);
  EXPECT_EQ(Reduce<double>(DataType::kFloat64, ReduceOp::kMean, 1, 0, true, 3), 1.0 / 3.0);
}

TEST(Reduction, AMeanIsOfMoreRanksThanTheTypeCanCount) {
  const auto mean = [](DataType type, auto incoming, auto accumulator, int ranks) -> int64_t {
    return Reduce<decltype(incoming)>(type, ReduceOp::kMean, incoming, accumulator, true, ranks);
  };
  using std::numeric_limits;
  for (const int ranks : {127, 128, 129, 255, 256, 257, 512, 1 << 16}) {
    EXPECT_EQ(mean(DataType::kInt8, int8_t{-100}, int8_t{-28}, ranks), -128 / ranks) << ranks;
    EXPECT_EQ(mean(DataType::kUint8, uint8_t{200}, uint8_t{55}, ranks), 255 / ranks) << ranks;
    EXPECT_EQ(mean(DataType::kInt16, int16_t{-32000}, int16_t{-768}, ranks), -32768 / ranks);
    EXPECT_EQ(mean(DataType::kInt32, numeric_limits<int32_t>::min(), int32_t{0}, ranks),
              numeric_limits<int32_t>::min() / ranks);
    EXPECT_EQ(mean(DataType::kInt64, numeric_limits<int64_t>::min(), int64_t{0}, ranks),
              numeric_limits<int64_t>::min() / ranks);
  }
}

TEST(Reduction, ANaNWinsMinimumAndMaximumFromEitherSide) {
  for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
    EXPECT_TRUE(std::isnan(Reduce<float>(DataType::kFloat32, op, NAN, 1)));
    EXPECT_TRUE(std::isnan(Reduce<float>(DataType::kFloat32, op, 1, NAN)));
    EXPECT_TRUE(std::isnan(Reduce<double>(DataType::kFloat64, op, NAN, -INFINITY)));
  }
}

TEST(Reduction, SixteenBitsAreAddedInThirtyTwo) {
  // 256 + 1 has no bfloat16 of its own; (256 + 257) / 2 would be lost were the sum rounded first.
  const uint16_t k256 = 0x4380, k1 = 0x3f80, k255 = 0x437f;
  EXPECT_EQ(Reduce<uint16_t>(DataType::kBFloat16, ReduceOp::kSum, k256, k1), 0x4380);
  EXPECT_EQ(Reduce<uint16_t>(DataType::kBFloat16, ReduceOp::kMean, k255, k255), k255);
  EXPECT_EQ(Reduce<uint16_t>(DataType::kFloat16, ReduceOp::kMean, 0x7bff, 0x7bff), 0x7bff)
      << "65504 + 65504 does not overflow on the way to its mean";
}

TEST(Reduction, WorksOnUnalignedBytesAndTouchesNothingBeyond) {
  for (const size_t count : {1u, 15u, 16u, 17u, 1001u}) {
    std::vector<char> accumulator(count * 4 + 16, 'x'), incoming(count * 4 + 16, 'y');
    for (size_t i = 0; i < count; ++i) {
      const float a = static_cast<float>(i), b = 0.5f;
      std::memcpy(&accumulator[3 + 4 * i], &a, 4);
      std::memcpy(&incoming[5 + 4 * i], &b, 4);
    }
    Reduction{DataType::kFloat32, ReduceOp::kSum, 2}.Apply(&accumulator[3], &incoming[5], count,
                                                           true);
    for (size_t i = 0; i < count; ++i) {
      float sum;
      std::memcpy(&sum, &accumulator[3 + 4 * i], 4);
      ASSERT_EQ(sum, static_cast<float>(i) + 0.5f);
    }
    EXPECT_EQ(accumulator[2], 'x');
    EXPECT_EQ(accumulator[3 + 4 * count], 'x');
  }
}

}  // namespace
}  // namespace tutti::comm
