// Covers: philox.h.
#include "runtime/data/sampling/random_stream.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace tutti::data {
namespace {

using Purpose = RandomStream::Purpose;

// The known-answer vectors that the authors publish with Random123 (kat_vectors, philox4x32 10).
TEST(Philox, GivesThePublishedVectors) {
  EXPECT_EQ(Philox({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomStream, IsAFunctionOfItsArguments) {
  RandomStream a(7, Purpose::kAugmentation, 3, 1234);
  RandomStream b(7, Purpose::kAugmentation, 3, 1234);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a.Next64(), b.Next64());
}

TEST(RandomStream, DiffersInEachArgument) {
  std::set<uint64_t> first;
  for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32}) {
    for (const Purpose purpose : {Purpose::kPermutation, Purpose::kAugmentation}) {
      for (const int64_t epoch : {0, 1, 2}) {
        for (const int64_t sample : {int64_t{0}, int64_t{1}, int64_t{1} << 32, int64_t{1} << 40}) {
          first.insert(RandomStream(seed, purpose, epoch, sample).Next64());
        }
      }
    }
  }
  EXPECT_EQ(first.size(), 3u * 2 * 3 * 4);
}

TEST(RandomStream, BelowIsUniform) {
  RandomStream random(1, Purpose::kAugmentation, 0, 0);
  constexpr int kDraws = 90000;
  std::vector<int> counts(9);
  for (int i = 0; i < kDraws; ++i) ++counts.at(random.Below(9));
  double chi_squared = 0;
  for (const int count : counts) chi_squared += (count - 10000.0) * (count - 10000.0) / 10000.0;
  EXPECT_LT(chi_squared, 26.1);  // 8 degrees of freedom, p = 0.001
}

TEST(RandomStream, BelowStaysBelowForHugeBounds) {
  RandomStream random(1, Purpose::kAugmentation, 0, 0);
  const uint64_t bound = (uint64_t{1} << 63) + 1;  // half of all draws are rejected
  for (int i = 0; i < 1000; ++i) EXPECT_LT(random.Below(bound), bound);
  EXPECT_EQ(random.Below(1), 0u);
}

TEST(RandomStream, UniformFillsItsRange) {
  RandomStream random(1, Purpose::kAugmentation, 0, 0);
  double sum = 0, least = 10, most = -10;
  for (int i = 0; i < 10000; ++i) {
    const double u = random.Uniform(-1, 3);
    sum += u;
    least = std::min(least, u);
    most = std::max(most, u);
  }
  EXPECT_NEAR(sum / 10000, 1, 0.05);
  EXPECT_GE(least, -1);
  EXPECT_LT(least, -0.99);
  EXPECT_LT(most, 3);
  EXPECT_GT(most, 2.99);
}

}  // namespace
}  // namespace tutti::data
