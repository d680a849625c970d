#include "runtime/comm/collective/compression/compute_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <stdexcept>

namespace tutti::comm {
namespace {

TEST(ComputeThread, WhatBothSidesDidIsThereAfterwardsManyTimesOver) {
  ComputeThread compute_thread;
  int sum = 0, rounds = 0;
  for (int i = 1; i <= 1000; ++i) {
    compute_thread.Run([&sum, i] { sum += i; }, [&rounds] { ++rounds; });
    ASSERT_EQ(sum, i * (i + 1) / 2);
    ASSERT_EQ(rounds, i);
  }
}

TEST(ComputeThread, WorksBesideItsOwner) {
  ComputeThread compute_thread;
  std::atomic<bool> owner_went_on = false;
  compute_thread.Run([&] { owner_went_on.wait(false); },
                     [&] {
                       owner_went_on = true;
                       owner_went_on.notify_all();
                     });
  EXPECT_TRUE(owner_went_on);
}

TEST(ComputeThread, MayEndWithoutEverHavingWorked) { ComputeThread unused; }

TEST(ComputeThread, WhatTheWorkThrowsComesOutAtItsOwnerAndTheThreadGoesOn) {
  ComputeThread compute_thread;
  bool communicated = false;
  EXPECT_THROW(
      compute_thread.Run([] { throw std::bad_alloc(); }, [&communicated] { communicated = true; }),
      std::bad_alloc);
  EXPECT_TRUE(communicated);
  int sum = 0;
  compute_thread.Run([&sum] { sum += 1; }, [] {});
  EXPECT_EQ(sum, 1) << "and what was thrown is forgotten";
}

TEST(ComputeThread, TheWorkIsOverWhenWhatItsOwnerThrewComesOut) {
  ComputeThread compute_thread;
  std::atomic<bool> threw = false;
  size_t turns = 0;
  const auto work = [&] {
    threw.wait(false);
    while (turns < 10'000'000) turns = turns + 1;
    throw std::bad_alloc();
  };
  const auto own = [&] {
    threw = true;
    threw.notify_all();
    throw std::length_error("the owner's");
  };
  EXPECT_THROW(compute_thread.Run(work, own), std::length_error);
  EXPECT_EQ(turns, 10'000'000u);
}

}  // namespace
}  // namespace tutti::comm
