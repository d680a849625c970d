#include "runtime/comm/collective/selection.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tutti::comm {
namespace {

using enum AllReduceAlgorithm;

constexpr size_t kMiB = 1 << 20;

TEST(SelectionTest, HopsDecideForFewBytesAndBytesForMany) {
  for (const int ranks : {2, 3, 4, 6, 8, 64}) {
    EXPECT_EQ(ChooseAllReduce(1, ranks, kUsualCost), kDoubling) << ranks;
    EXPECT_EQ(ChooseAllReduce(1024, ranks, kUsualCost), kDoubling) << ranks;
  }
  for (const int ranks : {2, 3, 4, 6, 7, 8, 64}) {
    EXPECT_EQ(ChooseAllReduce(256 * kMiB, ranks, kUsualCost), kRing) << ranks;
  }
}

TEST(SelectionTest, ManyRanksHalveAndDoubleWhatLiesBetween) {
  EXPECT_EQ(ChooseAllReduce(kMiB, 16, kUsualCost), kHalvingDoubling);
  EXPECT_EQ(ChooseAllReduce(kMiB, 64, kUsualCost), kHalvingDoubling);
}

TEST(SelectionTest, RanksBeyondAPowerOfTwoMakeTheRingWinEarlier) {
  EXPECT_EQ(ChooseAllReduce(kMiB, 8, kUsualCost), kHalvingDoubling);
  EXPECT_EQ(ChooseAllReduce(kMiB, 9, kUsualCost), kRing);
}

TEST(SelectionTest, WhatIsLongToAddGoesAroundTheRing) {
  LinkCost cost = kUsualCost;
  cost.gamma = 0;
  EXPECT_EQ(ChooseAllReduce(8 * kMiB, 8, cost), kHalvingDoubling);
  EXPECT_EQ(ChooseAllReduce(8 * kMiB, 8, kUsualCost), kRing);
}

TEST(SelectionTest, AFasterLinkIsWorthMoreHopsLater) {
  const LinkCost slow = {50e-6, 8e-9, 0.1e-9};  // 1 Gbit/s
  for (const int ranks : {4, 8}) {
    size_t fast_switch = 1, slow_switch = 1;
    while (ChooseAllReduce(fast_switch, ranks, {50e-6, 0.08e-9, 0.1e-9}) == kDoubling)
      ++fast_switch;
    while (ChooseAllReduce(slow_switch, ranks, slow) == kDoubling) ++slow_switch;
    EXPECT_LT(slow_switch, fast_switch);
  }
}

TEST(SelectionTest, OnceAnAlgorithmIsLeftForALargerMessageItDoesNotComeBack) {
  for (int ranks = 2; ranks <= 130; ++ranks) {
    AllReduceAlgorithm before = kDoubling;
    for (size_t bytes = 1; bytes <= 1024 * kMiB; bytes *= 2) {
      const AllReduceAlgorithm now = ChooseAllReduce(bytes, ranks, kUsualCost);
      EXPECT_GE(static_cast<int>(now), static_cast<int>(before)) << ranks << " " << bytes;
      before = now;
    }
  }
}

TEST(SelectionTest, ATreeUpAndDownNeverWins) {
  for (int ranks = 2; ranks <= 130; ++ranks) {
    for (size_t bytes = 1; bytes <= 1024 * kMiB; bytes *= 4) {
      const double sent = kUsualCost.alpha + static_cast<double>(bytes) * kUsualCost.beta;
      const double hops = std::ceil(std::log2(ranks));
      const double tree = hops * (2 * sent + static_cast<double>(bytes) * kUsualCost.gamma);
      EXPECT_LE(PredictedSeconds(kDoubling, bytes, ranks, kUsualCost), tree * 1.0000001) << ranks;
    }
  }
}

}  // namespace
}  // namespace tutti::comm
