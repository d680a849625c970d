// Covers: spin_limit.h.
#include "runtime/comm/collective/adasum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "runtime/comm/group/group_test_support.h"
#include "runtime/comm/reference_test_support.h"

namespace tutti::comm {
namespace {

using Vector = std::vector<double>;
using Transport = GroupOptions::Transport;

double Dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// The formula, word for word.
Vector AdasumOfTwo(const Vector& a, const Vector& b) {
  const double ab = Dot(a, b), aa = Dot(a, a), bb = Dot(b, b);
  Vector result(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    result[i] = (aa == 0 ? 1 : 1 - ab / (2 * aa)) * a[i] + (bb == 0 ? 1 : 1 - ab / (2 * bb)) * b[i];
  }
  return result;
}

// A binary tree over the ranks, those beyond a power of two folded in first.
Vector Reference(std::vector<Vector> inputs) {
  size_t power = 1;
  while (2 * power <= inputs.size()) power *= 2;
  for (size_t i = power; i < inputs.size(); ++i) {
    inputs[i - power] = AdasumOfTwo(inputs[i - power], inputs[i]);
  }
  inputs.resize(power);
  for (; inputs.size() > 1; inputs.resize(inputs.size() / 2)) {
    for (size_t i = 0; i < inputs.size() / 2; ++i) {
      inputs[i] = AdasumOfTwo(inputs[2 * i], inputs[2 * i + 1]);
    }
  }
  return inputs[0];
}

double InputValue(int rank, size_t i) {
  return std::sin(static_cast<double>(i * 31 + static_cast<size_t>(rank) * 1009)) +
         0.3 * std::cos(static_cast<double>(i));
}

ByteVector Stored(const Vector& values, DataType type) {
  ByteVector data(values.size() * SizeOf(type));
  for (size_t i = 0; i < values.size(); ++i) {
    Put(type, data.data() + i * SizeOf(type), values[i]);
  }
  return data;
}

Vector Loaded(const ByteVector& data, DataType type) {
  Vector values;
  for (size_t at = 0; at < data.size(); at += SizeOf(type)) values.push_back(Get(type, &data[at]));
  return values;
}

double Precision(DataType type) {
  if (type == DataType::kFloat64) return 1e-13;
  if (type == DataType::kFloat32) return 1e-6;
  return type == DataType::kFloat16 ? 4e-3 : 3e-2;
}

TEST(Adasum, EqualsTheFormulaOverATreeOfRanks) {
  for (const int size : {2, 3, 4, 5, 7, 8}) {
    OnEveryRank(OptionsFor(size, Transport::kAuto, 3), [&](int rank, auto group) {
      ASSERT_TRUE(group.ok()) << group.status();
      for (const DataType type :
           {DataType::kFloat64, DataType::kFloat32, DataType::kFloat16, DataType::kBFloat16}) {
        for (const size_t count : {0, 1, 2, 5, 1000, 20011}) {
          std::vector<Vector> inputs(static_cast<size_t>(size), Vector(count));
          for (int r = 0; r < size; ++r) {
            for (size_t i = 0; i < count; ++i) inputs[static_cast<size_t>(r)][i] = InputValue(r, i);
          }
          ByteVector data = Stored(inputs[static_cast<size_t>(rank)], type);
          ASSERT_TRUE(
              (*group)->AllReduce(data.data(), count, type, ReduceOp::kAdasum, Soon()).ok());
          const Vector result = Loaded(data, type), expected = Reference(inputs);
          for (size_t i = 0; i < count; ++i) {
            ASSERT_NEAR(result[i], expected[i], Precision(type) * size)
                << NameOf(type) << " " << count << " elements, " << size << " ranks";
          }
        }
      }
    });
  }
}

TEST(Adasum, GivesEqualBitsOnAllRanksAndAtEveryRepetition) {
  constexpr size_t kCount = 10007;
  std::vector<ByteVector> results(12);
  for (int repetition = 0; repetition < 2; ++repetition) {
    OnEveryRank(OptionsFor(6, Transport::kAuto, 4), [&](int rank, auto group) {
      ASSERT_TRUE(group.ok()) << group.status();
      Vector values(kCount);
      for (size_t i = 0; i < kCount; ++i) values[i] = InputValue(rank, i);
      ByteVector data = Stored(values, DataType::kFloat32);
      ASSERT_TRUE(
          (*group)
              ->AllReduce(data.data(), kCount, DataType::kFloat32, ReduceOp::kAdasum, Soon())
              .ok());
      results[static_cast<size_t>(repetition * 6 + rank)] = data;
    });
  }
  for (const ByteVector& result : results) EXPECT_TRUE(result == results[0]);
}

Vector OfTwo(const Vector& a, const Vector& b, DataType type) {
  ByteVector sum = Stored(a, type);
  const ByteVector other = Stored(b, type);
  Adasum(sum.data(), other.data(), a.size(), type);
  return Loaded(sum, type);
}

TEST(Adasum, AddsWhatIsOrthogonalAndAveragesWhatIsEqual) {
  EXPECT_EQ(OfTwo({3, 0}, {0, 4}, DataType::kFloat32), (Vector{3, 4}));
  EXPECT_EQ(OfTwo({3, 4}, {3, 4}, DataType::kFloat32), (Vector{3, 4}));
}

TEST(Adasum, AVectorWithoutLengthGivesUpNothing) {
  EXPECT_EQ(OfTwo({0, 0}, {3, 4}, DataType::kFloat64), (Vector{3, 4}));
  EXPECT_EQ(OfTwo({3, 4}, {0, 0}, DataType::kFloat16), (Vector{3, 4}));
  EXPECT_EQ(OfTwo({0, 0}, {0, 0}, DataType::kBFloat16), (Vector{0, 0}));
}

TEST(Adasum, DotProductsOfHalvesDoNotOverflow) {
  const Vector large(100, 60000);  // its square is beyond a half and nearly beyond a float's sum
  EXPECT_EQ(OfTwo(large, large, DataType::kFloat16)[0], 60000);
}

TEST(Adasum, ScattersToo) {
  OnEveryRank(OptionsFor(3, Transport::kAuto), [&](int rank, auto group) {
    ASSERT_TRUE(group.ok()) << group.status();
    std::vector<double> input(6), whole(6), part(static_cast<size_t>(rank) + 1);
    for (size_t i = 0; i < 6; ++i) whole[i] = input[i] = InputValue(rank, i);
    const std::vector<size_t> counts = {1, 2, 3};
    constexpr DataType kType = DataType::kFloat64;
    ASSERT_TRUE(
        (*group)
            ->ReduceScatter(input.data(), counts, part.data(), kType, ReduceOp::kAdasum, Soon())
            .ok());
    ASSERT_TRUE((*group)->AllReduce(whole.data(), 6, kType, ReduceOp::kAdasum, Soon()).ok());
    const size_t offset = static_cast<size_t>(rank * (rank + 1) / 2);
    for (size_t i = 0; i < part.size(); ++i) EXPECT_EQ(part[i], whole[offset + i]);
  });
}

}  // namespace
}  // namespace tutti::comm
