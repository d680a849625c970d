#include "base/threads/keyed_turns.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"

namespace tutti::base {
namespace {

TEST(KeyedTurns, ThoseOfOneKeyAreTakenOneAfterAnother) {
  KeyedTurns turns;
  std::atomic<int> in = 0, most = 0, sum = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        const KeyedTurns::Turn turn(turns, "n1");
        if (++in > most) most = in.load();
        ++sum;
        std::this_thread::yield();
        --in;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(most, 1);
  EXPECT_EQ(sum, 1600);
}

TEST(KeyedTurns, ThoseOfAnotherKeyWaitForNone) {
  KeyedTurns turns;
  auto first = std::make_unique<KeyedTurns::Turn>(turns, "n1");
  absl::Notification begins;
  std::atomic<bool> is_given_back = false, was_given_back = false;
  std::thread waits([&] {
    begins.Notify();
    const KeyedTurns::Turn turn(turns, "n1");
    was_given_back = is_given_back.load();
  });
  begins.WaitForNotification();
  for (int i = 0; i < 1000; ++i) {
    const KeyedTurns::Turn other(turns, "n2");
    std::this_thread::yield();
  }
  is_given_back = true;
  first.reset();
  waits.join();
  EXPECT_TRUE(was_given_back) << "the turn of the same key was taken before it was given back";
}

}  // namespace
}  // namespace tutti::base
