#include "runtime/comm/collective/reduction/combine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/comm/reference_test_support.h"

namespace tutti::comm {
namespace {

// Every rank's data, each at an odd place.
class Inputs {
 public:
  Inputs(int ranks, size_t count, DataType type, ReduceOp op) {
    for (int rank = 0; rank < ranks; ++rank) {
      ByteVector& bytes = bytes_.emplace_back(1);
      const ByteVector data = Input(rank, count, type, op);
      bytes.insert(bytes.end(), data.begin(), data.end());
    }
    for (ByteVector& bytes : bytes_) places_.push_back(bytes.data() + 1);
  }
  std::vector<std::byte*>& places() { return places_; }
  std::vector<const std::byte*> sources() const { return {places_.begin(), places_.end()}; }

 private:
  std::vector<ByteVector> bytes_;
  std::vector<std::byte*> places_;
};

TEST(CombineTest, EqualsTheReferenceForEveryTypeOperationLengthAndNumberOfInputs) {
  for (const DataType type : kTypes) {
    for (const ReduceOp op : kOps) {
      for (const int ranks : {2, 3, 5}) {
        for (const size_t count : {0, 1, 7, 511, 512, 513, 70001}) {
          if (!Exists(type, op)) continue;
          Inputs inputs(ranks, count, type, op);
          ByteVector output(count * SizeOf(type) + 1);
          std::byte* const at = output.data() + 1;
          Combine({type, op, ranks}, inputs.sources(), {&at, 1}, count, true);
          const ByteVector expected = Expected(ranks, count, type, op);
          ASSERT_TRUE(std::equal(expected.begin(), expected.end(), at))
              << NameOf(type) << " " << NameOf(op) << " of " << ranks << " count " << count;
        }
      }
    }
  }
}

TEST(CombineTest, WritesTheSameIntoAllInputs) {
  for (const DataType type : {DataType::kFloat32, DataType::kBFloat16, DataType::kInt8}) {
    for (const int ranks : {2, 3, 4}) {
      constexpr size_t kCount = 200003;
      Inputs inputs(ranks, kCount, type, ReduceOp::kMean);
      Combine({type, ReduceOp::kMean, ranks}, inputs.sources(), inputs.places(), kCount, true);
      const ByteVector expected = Expected(ranks, kCount, type, ReduceOp::kMean);
      for (const std::byte* const place : inputs.places()) {
        ASSERT_TRUE(std::equal(expected.begin(), expected.end(), place)) << NameOf(type);
      }
    }
  }
}

TEST(CombineTest, DividesAMeanOnlyWhenItIsTheLastReduction) {
  float a = 3, b = 4, out = 0;
  const std::byte* const inputs[] = {reinterpret_cast<std::byte*>(&a),
                                     reinterpret_cast<std::byte*>(&b)};
  std::byte* const output = reinterpret_cast<std::byte*>(&out);
  Combine({DataType::kFloat32, ReduceOp::kMean, 4}, inputs, {&output, 1}, 1, false);
  EXPECT_EQ(out, 7);
  Combine({DataType::kFloat32, ReduceOp::kMean, 4}, inputs, {&output, 1}, 1, true);
  EXPECT_EQ(out, 1.75f);
}

TEST(CombineTest, AddsInTheOrderOfTheInputs) {
  // (1 + 2^24) + -2^24 is 0 in float, 1 + (2^24 + -2^24) is 1.
  const float values[] = {1, 16777216, -16777216};
  std::vector<const std::byte*> inputs;
  for (const float& value : values) inputs.push_back(reinterpret_cast<const std::byte*>(&value));
  float out = -1;
  std::byte* const output = reinterpret_cast<std::byte*>(&out);
  Combine({DataType::kFloat32, ReduceOp::kSum, 3}, inputs, {&output, 1}, 1, true);
  EXPECT_EQ(out, 0);
}

TEST(CombineTest, RoundsSixteenBitsOnce) {
  // 256 + 1 is not a bfloat16: rounded after each addition the sum would stay 256.
  const uint16_t values[] = {FloatToBFloat16(256), FloatToBFloat16(1), FloatToBFloat16(1)};
  std::vector<const std::byte*> inputs;
  for (const uint16_t& value : values) inputs.push_back(reinterpret_cast<const std::byte*>(&value));
  uint16_t out = 0;
  std::byte* const output = reinterpret_cast<std::byte*>(&out);
  Combine({DataType::kBFloat16, ReduceOp::kSum, 3}, inputs, {&output, 1}, 1, true);
  EXPECT_EQ(BFloat16ToFloat(out), 258);
}

TEST(CombineTest, ANanWinsMinimumAndMaximum) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
    for (const bool first : {true, false}) {
      const float a = first ? nan : 1, b = first ? 1 : nan;
      const std::byte* const inputs[] = {reinterpret_cast<const std::byte*>(&a),
                                         reinterpret_cast<const std::byte*>(&b)};
      float out = 0;
      std::byte* const output = reinterpret_cast<std::byte*>(&out);
      Combine({DataType::kFloat32, op, 2}, inputs, {&output, 1}, 1, true);
      EXPECT_TRUE(std::isnan(out)) << NameOf(op) << " " << first;
    }
  }
}

}  // namespace
}  // namespace tutti::comm
