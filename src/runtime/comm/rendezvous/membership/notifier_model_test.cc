// The notifier's own code through all that a sleeper and two callers can do under C++'s memory
// model: the sleeper sees what both did and never sleeps for ever.
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
struct Calls {
  NotifierOf<ModelAtomic, ModelFutex> notifier;
  ModelAtomic<int> said[2];
};

void AwaitAll(Calls& calls, int callers, int times) {
  const base::Deadline deadline = base::Deadline::After(absl::Hours(1));
  for (int heard = 0; heard < callers * times;) {
    Interleavings::Forget(0);
    heard = 0;
    for (int caller = 0; caller < callers; ++caller) {
      heard += calls.said[caller].load(std::memory_order_relaxed);
    }
    if (heard < callers * times) calls.notifier.Await(deadline);
  }
}

Interleavings::Result ExploreNotifier(int callers, int times,
                                      const std::optional<WeakenedOrder>& weakened = {}) {
  std::unique_ptr<Calls> calls;
  return Interleavings::Explore(
      callers + 1, [&] { calls = std::make_unique<Calls>(); },
      [&](int fiber) {
        if (fiber == callers) return AwaitAll(*calls, callers, times);
        for (int time = 1; time <= times; ++time) {
          Interleavings::Forget(time);
          calls->said[fiber].store(time, std::memory_order_relaxed);
          calls->notifier.Notify();
        }
      },
      {.weakened = weakened});
}

TEST(NotifierModelTest, TheSleeperSeesAllThatWasDoneBeforeANotification) {
  for (const int callers : {1, 2}) {
    const int times = 2;
    const auto result = ExploreNotifier(callers, times);
    EXPECT_EQ(result.failure, "");
    PrintCounts(absl::StrCat("notifier, ", callers, " callers, ", times, " notifications each"),
                result);
  }
}

TEST(NotifierModelTest, NeedsItsMemoryOrders) {
  const auto check =
      WeakenEach([](const auto& weakened) { return ExploreNotifier(2, 2, weakened); });
  EXPECT_THAT(check.not_needed, testing::IsEmpty());
  EXPECT_GT(check.tried, 0u);
}

}  // namespace
}  // namespace tutti::comm

#endif
