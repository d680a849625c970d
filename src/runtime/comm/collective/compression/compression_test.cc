// Compressed all-reduce over sizes, transports, nodes and encodings, against sums in fp64.
// Covers: runtime/comm/collective/ring.cc.
#include "runtime/comm/collective/compression/compression.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <tuple>

#include "runtime/comm/group/group_test_support.h"

namespace tutti::comm {
namespace {

using Transport = GroupOptions::Transport;
using Values = std::vector<float>;

constexpr Encoding kEncodings[] = {Encoding::kFloat16, Encoding::kBFloat16, Encoding::kInt8};

Values Gradient(int rank, size_t count, unsigned step = 0) {
  std::mt19937 generator(1 + static_cast<unsigned>(rank) + 100 * step);
  std::normal_distribution<float> normal(0, 0.01f);
  Values values(count);
  for (float& value : values) value = normal(generator);
  return values;
}

std::vector<double> SumOf(int size, size_t count) {
  std::vector<double> sum(count);
  for (int rank = 0; rank < size; ++rank) {
    const Values values = Gradient(rank, count);
    for (size_t i = 0; i < count; ++i) sum[i] += values[i];
  }
  return sum;
}

// Bounds the error of rounding a value once, if its block holds no value larger than `largest`.
double Step(Encoding encoding, double largest) {
  if (encoding == Encoding::kInt8) return largest / 254 * 1.001;
  return largest * (encoding == Encoding::kFloat16 ? 0x1p-11 : 0x1p-8) + 0x1p-24;
}

// Rank 0's values, when all ranks have the same bits; else empty.
Values SameOnAllRanks(Communicator& group, const Values& values) {
  Values all(values.size() * static_cast<size_t>(group.size()));
  const size_t bytes = values.size() * sizeof(float);
  EXPECT_TRUE(group.AllGather(values.data(), bytes, all.data(), Soon()).ok());
  for (int rank = 1; rank < group.size(); ++rank) {
    const float* const theirs = &all[values.size() * static_cast<size_t>(rank)];
    if (std::memcmp(all.data(), theirs, bytes) != 0) return {};
  }
  all.resize(values.size());
  return all;
}

// Size of the group, transport, ranks per node.
class CompressionTest : public testing::TestWithParam<std::tuple<int, Transport, int>> {
 protected:
  int size() const { return std::get<0>(GetParam()); }

  void Run(const std::function<void(Communicator&)>& body) {
    OnEveryRank(OptionsFor(size(), std::get<1>(GetParam()), std::get<2>(GetParam())),
                [&](int, absl::StatusOr<std::unique_ptr<Communicator>> group) {
                  ASSERT_TRUE(group.ok()) << group.status();
                  body(**group);
                });
  }
};

TEST_P(CompressionTest, EveryRankGetsTheSameBitsWithinTwoRoundings) {
  constexpr size_t kLarge = 530001;  // three segments
  const std::vector<double> sums = SumOf(size(), kLarge);
  Run([&](Communicator& group) {
    const Values before = Gradient(group.rank(), kLarge);
    for (const Encoding encoding : kEncodings) {
      CompressedAllReduce reduce(encoding);
      for (const size_t count :
           {size_t{1}, size_t{255}, size_t{256}, size_t{257}, size_t{2049}, kLarge}) {
        Values values(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(count));
        const auto status = reduce.Run(group, values, ReduceOp::kSum, nullptr, Soon());
        ASSERT_TRUE(status.ok()) << status;
        ASSERT_EQ(SameOnAllRanks(group, values), values) << count;
        // No value is larger than 0.06, no sum than 0.06 n.
        const double bound = Step(encoding, 0.06) * (size() - 1) + Step(encoding, 0.06 * size());
        size_t far = 0;
        for (size_t i = 0; i < count; ++i) far += std::abs(values[i] - sums[i]) <= bound ? 0 : 1;
        ASSERT_EQ(far, 0u) << count;
      }
    }
  });
}

TEST_P(CompressionTest, AMeanIsTheSumDividedByTheRanks) {
  Run([&](Communicator& group) {
    CompressedAllReduce reduce(Encoding::kInt8);
    Values values(1000, static_cast<float>(group.rank()));
    ASSERT_TRUE(reduce.Run(group, values, ReduceOp::kMean, nullptr, Soon()).ok());
    for (const float value : values) ASSERT_NEAR(value, (size() - 1) / 2.0, 0.02 * size());
  });
}

TEST_P(CompressionTest, TheSameInputsGiveTheSameBits) {
  Run([&](Communicator& group) {
    std::vector<Values> results;
    for (int run = 0; run < 2; ++run) {
      CompressedAllReduce reduce(Encoding::kInt8);
      ErrorFeedback feedback;
      for (unsigned step = 0; step < 3; ++step) {
        Values values = Gradient(group.rank(), 300007, step);
        ASSERT_TRUE(reduce.Run(group, values, ReduceOp::kSum, &feedback, Soon()).ok());
        results.push_back(std::move(values));
      }
    }
    for (size_t step = 0; step < 3; ++step) EXPECT_EQ(results[step], results[step + 3]);
  });
}

TEST_P(CompressionTest, SettledFeedbackGoesOnAsIfItHadBeenTakenUpByANewRun) {
  constexpr size_t kCount = 300007;
  Run([&](Communicator& group) {
    CompressedAllReduce reduce(Encoding::kInt8);
    ErrorFeedback goes_on, begins;
    std::vector<double> sent(kCount), received(kCount);
    for (unsigned step = 0; step < 3; ++step) {
      Values values = Gradient(group.rank(), kCount, step);
      for (size_t i = 0; i < kCount; ++i) sent[i] += values[i];
      ASSERT_TRUE(reduce.Run(group, values, ReduceOp::kSum, &goes_on, Soon()).ok());
      for (size_t i = 0; i < kCount; ++i) received[i] += values[i];
    }
    Values total(kCount);
    ASSERT_TRUE(reduce.Settle(group, goes_on, total, Soon()).ok());
    ASSERT_EQ(SameOnAllRanks(group, total), total);
    ASSERT_TRUE(
        group.AllReduce(sent.data(), kCount, DataType::kFloat64, ReduceOp::kSum, Soon()).ok());
    for (size_t i = 0; i < kCount; ++i) ASSERT_NEAR(sent[i], received[i] + total[i], 1e-6);
    ASSERT_TRUE(reduce.Restore(group, begins, total, Soon()).ok());
    for (unsigned step = 3; step < 5; ++step) {
      Values a = Gradient(group.rank(), kCount, step), b = a;
      ASSERT_TRUE(reduce.Run(group, a, ReduceOp::kSum, &goes_on, Soon()).ok());
      ASSERT_TRUE(reduce.Run(group, b, ReduceOp::kSum, &begins, Soon()).ok());
      ASSERT_EQ(a, b);
    }
  });
}

// A gradient that is the same at every step, of which int8 alone would never see the small values.
TEST_P(CompressionTest, WithErrorFeedbackTheMeanOverStepsTendsToTheTrueMean) {
  constexpr size_t kCount = 5000;
  constexpr int kSteps = 64;
  Run([&](Communicator& group) {
    Values gradient(kCount, 0.001f * static_cast<float>(group.rank() + 1));
    for (size_t i = 0; i < kCount; i += 100) gradient[i] = 1;
    CompressedAllReduce reduce(Encoding::kInt8);
    ErrorFeedback feedback;
    std::vector<double> total(kCount);
    Values without = gradient;
    ASSERT_TRUE(reduce.Run(group, without, ReduceOp::kMean, nullptr, Soon()).ok());
    for (int step = 0; step < kSteps; ++step) {
      Values values = gradient;
      ASSERT_TRUE(reduce.Run(group, values, ReduceOp::kMean, &feedback, Soon()).ok());
      for (size_t i = 0; i < kCount; ++i) total[i] += values[i];
    }
    const double small = 0.001 * (size() + 1) / 2;
    for (size_t i = 0; i < kCount; ++i) {
      const double truth = i % 100 == 0 ? 1 : small;
      // What is kept is at most half a step of the values and of the sum.
      ASSERT_NEAR(total[i] / kSteps, truth, 2.0 / 127 / kSteps) << i;
    }
    if (size() == 2) {
      EXPECT_EQ(without[1], 0) << "without feedback it is lost every time";
    }
  });
}

TEST_P(CompressionTest, WhatIsNotFiniteAtOneRankIsSoAtAllAndGoneInTheNextStep) {
  Run([&](Communicator& group) {
    for (const Encoding encoding : kEncodings) {
      CompressedAllReduce reduce(encoding);
      ErrorFeedback feedback;
      for (const float bad : {NAN, INFINITY, 1.0f}) {
        Values values(10000, 0.5f);
        if (group.rank() == size() - 1) values[10] = values[9999] = bad;
        ASSERT_TRUE(reduce.Run(group, values, ReduceOp::kSum, &feedback, Soon()).ok());
        EXPECT_EQ(std::isfinite(values[10]), std::isfinite(bad));
        EXPECT_EQ(std::isfinite(values[9999]), std::isfinite(bad));
        EXPECT_TRUE(std::isfinite(values[5000]));
      }
    }
  });
}

std::string Name(const testing::TestParamInfo<std::tuple<int, Transport, int>>& info) {
  const auto [size, transport, ranks_per_node] = info.param;
  return std::to_string(size) +
         (transport == Transport::kTcp            ? "RanksOverTcp"
          : transport == Transport::kSharedMemory ? "RanksOverSharedMemory"
                                                  : "RanksWith") +
         (transport == Transport::kAuto ? std::to_string(ranks_per_node) + "PerNode" : "");
}

INSTANTIATE_TEST_SUITE_P(Groups, CompressionTest,
                         testing::Combine(testing::Values(2, 3, 4, 8),
                                          testing::Values(Transport::kTcp,
                                                          Transport::kSharedMemory),
                                          testing::Values(1 << 16)),
                         Name);

// 5 with 2 a node: not as many on each, so none is special.
INSTANTIATE_TEST_SUITE_P(Nodes, CompressionTest,
                         testing::Values(std::tuple(4, Transport::kAuto, 2),
                                         std::tuple(6, Transport::kAuto, 3),
                                         std::tuple(6, Transport::kAuto, 2),
                                         std::tuple(5, Transport::kAuto, 2)),
                         Name);

TEST(Compression, OtherOperationsAreRefusedAndAGroupOfOneChangesNothing) {
  auto alone = JoinGroup({});
  ASSERT_TRUE(alone.ok());
  CompressedAllReduce reduce(Encoding::kInt8);
  Values values = {0.1f, 1e20f};
  EXPECT_TRUE(
      absl::IsInvalidArgument(reduce.Run(**alone, values, ReduceOp::kMax, nullptr, Soon())));
  EXPECT_TRUE(reduce.Run(**alone, values, ReduceOp::kMean, nullptr, Soon()).ok());
  EXPECT_EQ(values, (Values{0.1f, 1e20f}));
}

// Groups of levels have numbers of their own; what is told is the whole group's.
TEST(Compression, ARankThatLeavesIsNamedByItsNumberInTheWholeGroup) {
  OnEveryRank(OptionsFor(4, Transport::kAuto, 2),
              [&](int rank, absl::StatusOr<std::unique_ptr<Communicator>> group) {
                ASSERT_TRUE(group.ok()) << group.status();
                CompressedAllReduce reduce(Encoding::kInt8);
                Values values(100000, 1.0f);
                ASSERT_TRUE(reduce.Run(**group, values, ReduceOp::kSum, nullptr, Soon()).ok());
                if (rank == 3) return;
                const auto status = reduce.Run(**group, values, ReduceOp::kSum, nullptr, Soon());
                EXPECT_EQ(LostRank(status), 3) << status;
              });
}

TEST(Compression, FeedbackBeginsAnewWhenTheBufferIsAnother) {
  ErrorFeedback feedback;
  feedback.Residual(10)[3] = 1;
  EXPECT_EQ(feedback.Residual(10)[3], 1);
  EXPECT_EQ(feedback.Residual(11)[3], 0);
}

}  // namespace
}  // namespace tutti::comm
