// The notifier's own code through all that a sleeper and two callers can do under C++'s memory
// model: the sleeper hears of both and never sleeps for ever.
// Covers: shared_notifier.h.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "runtime/comm/model/interleavings.h"
#include "runtime/comm/model/weakened_test_support.h"
#include "runtime/comm/rendezvous/membership/shared_notifier.h"

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)

namespace tutti::comm {
namespace {

// What the callers have to say is said without any order of memory but the notifier's.
struct Tower {
  NotifierOf<ModelAtomic, ModelFutex> notifier;
  ModelAtomic<int> said[2];
};

void AwaitAll(Tower& tower, int ringers, int times) {
  const base::Deadline deadline = base::Deadline::After(absl::Hours(1));
  for (int heard = 0; heard < ringers * times;) {
    Interleavings::Forget(0);
    heard = 0;
    for (int ringer = 0; ringer < ringers; ++ringer) {
      heard += tower.said[ringer].load(std::memory_order_relaxed);
    }
    if (heard < ringers * times) tower.notifier.Await(deadline);
  }
}

Interleavings::Result ExploreBell(int ringers, int times,
                                  const std::optional<WeakenedOrder>& weakened = {}) {
  std::unique_ptr<Tower> tower;
  return Interleavings::Explore(
      ringers + 1, [&] { tower = std::make_unique<Tower>(); },
      [&](int fiber) {
        if (fiber == ringers) return AwaitAll(*tower, ringers, times);
        for (int time = 1; time <= times; ++time) {
          Interleavings::Forget(time);
          tower->said[fiber].store(time, std::memory_order_relaxed);
          tower->notifier.Notify();
        }
      },
      {.weakened = weakened});
}

TEST(NotifierModelTest, TheSleeperHearsOfAllThatWasDoneBeforeARing) {
  for (const int ringers : {1, 2}) {
    const int times = 2;
    const auto result = ExploreBell(ringers, times);
    EXPECT_EQ(result.failure, "");
    PrintCounts(absl::StrCat("notifier, ", ringers, " callers, ", times, " notifications each"),
                result);
  }
}

TEST(NotifierModelTest, NeedsItsMemoryOrders) {
  const auto check = WeakenEach([](const auto& weakened) { return ExploreBell(2, 2, weakened); });
  EXPECT_THAT(check.not_needed, testing::IsEmpty());
  EXPECT_GT(check.tried, 0u);
}

}  // namespace
}  // namespace tutti::comm

#endif
