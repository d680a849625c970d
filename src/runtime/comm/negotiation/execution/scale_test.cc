// Covers: fusion_pack.cc.
#include "runtime/comm/negotiation/execution/scale.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/comm/collective/reduction/half.h"
#include "runtime/comm/negotiation/execution/fusion_pack.h"

namespace tutti::comm {
namespace {

TEST(ScaleTest, FloatingPointIsScaledInItsOwnType) {
  const float numbers[] = {1, -2.5f, 1e30f};
  float scaled[3];
  CopyScaled(numbers, scaled, 3, DataType::kFloat32, 0.1);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(scaled[i], numbers[i] * 0.1f);
  uint16_t half = FloatToHalf(3);
  CopyScaled(&half, &half, 1, DataType::kFloat16, 0.3);
  EXPECT_EQ(half, FloatToHalf(3 * 0.3f));
}

TEST(ScaleTest, IntegersAreScaledInDoublePrecisionTowardZeroAndDoNotWrap) {
  int32_t numbers[] = {7, -7, 2000000000, -2000000000};
  CopyScaled(numbers, numbers, 4, DataType::kInt32, 1.5);
  EXPECT_EQ(numbers[0], 10);
  EXPECT_EQ(numbers[1], -10);
  EXPECT_EQ(numbers[2], std::numeric_limits<int32_t>::max());
  EXPECT_EQ(numbers[3], std::numeric_limits<int32_t>::min());
  int64_t large = (int64_t{1} << 62) + 1;
  CopyScaled(&large, &large, 1, DataType::kInt64, 2);
  EXPECT_EQ(large, std::numeric_limits<int64_t>::max());
  uint8_t small = 200;
  CopyScaled(&small, &small, 1, DataType::kUint8, -1);
  EXPECT_EQ(small, 0);
  CopyScaled(&small, &small, 1, DataType::kUint8, std::nan(""));
  EXPECT_EQ(small, 0);
}

TEST(ScaleTest, BoolsAndAFactorOfOneAreCopiedAsTheyAre) {
  const uint8_t bools[] = {0, 1, 7};
  uint8_t copy[3];
  CopyScaled(bools, copy, 3, DataType::kBool, 0.5);
  EXPECT_EQ(copy[2], 7);
}

TEST(ScaleTest, TheNeutralElementChangesNothing) {
  float value;
  FillNeutral(&value, 1, DataType::kFloat32, ReduceOp::kMin);
  EXPECT_EQ(value, std::numeric_limits<float>::infinity());
  FillNeutral(&value, 1, DataType::kFloat32, ReduceOp::kMean);
  EXPECT_EQ(value, 0);
  uint16_t half;
  FillNeutral(&half, 1, DataType::kFloat16, ReduceOp::kProduct);
  EXPECT_EQ(HalfToFloat(half), 1);
  int8_t small;
  FillNeutral(&small, 1, DataType::kInt8, ReduceOp::kMax);
  EXPECT_EQ(small, -128);
  uint8_t boolean;
  FillNeutral(&boolean, 1, DataType::kBool, ReduceOp::kProduct);
  EXPECT_EQ(boolean, 1);
  FillNeutral(&boolean, 1, DataType::kBool, ReduceOp::kSum);
  EXPECT_EQ(boolean, 0);
}

TEST(PackTest, SmallPiecesOfOneTypeGoTogetherAndLargeOnesAlone) {
  const auto piece = [](size_t count, DataType type) {
    return Piece{nullptr, nullptr, count, type, nullptr};
  };
  const std::vector<Piece> pieces = {piece(10, DataType::kFloat32), piece(5, DataType::kInt64),
                                     piece(0, DataType::kInt8), piece(1 << 20, DataType::kFloat32),
                                     piece(20, DataType::kFloat32)};
  const auto packs = PackPieces(pieces, 1 << 20, false);
  ASSERT_EQ(packs.size(), 3u);
  EXPECT_EQ(packs[0].pieces.size(), 2u);
  EXPECT_EQ(packs[0].count(), 30u);
  EXPECT_EQ(packs[2].bytes, 4u << 20);
  EXPECT_EQ(PackPieces(pieces, 1 << 20, true).size(), 4u);
  EXPECT_EQ(PackPieces(pieces, 0, false).size(), 4u);
}

}  // namespace
}  // namespace tutti::comm
