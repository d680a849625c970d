#include "runtime/comm/collective/calculator.h"

#include <gtest/gtest.h>

namespace tutti::comm {
namespace {

TEST(Calculator, WhatTheWorkDidIsThereAfterFinishManyTimesOver) {
  Calculator calculator;
  int sum = 0;
  for (int i = 1; i <= 1000; ++i) {
    calculator.Begin([&sum, i] { sum += i; });
    calculator.Finish();
    ASSERT_EQ(sum, i * (i + 1) / 2);
  }
}

TEST(Calculator, WorksBesideItsOwner) {
  Calculator calculator;
  std::mutex mutex;
  std::condition_variable changed;
  bool owner_went_on = false;
  calculator.Begin([&] {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return owner_went_on; });
  });
  {
    const std::lock_guard lock(mutex);
    owner_went_on = true;
  }
  changed.notify_all();
  calculator.Finish();
}

TEST(Calculator, MayEndWithoutEverHavingWorkedOrFinished) {
  Calculator unused;
  bool done = false;
  {
    Calculator begun;
    begun.Begin([&done] { done = true; });
  }
  EXPECT_TRUE(done);
}

}  // namespace
}  // namespace tutti::comm
