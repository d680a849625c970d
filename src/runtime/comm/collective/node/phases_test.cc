#include "runtime/comm/collective/node/phases.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "base/unique_fd.h"

namespace tutti::comm {
namespace {

using View = Phases<std::atomic>;
using Mark = View::Mark;

// For ThreadSanitizer, which sees the plain slots: ranks that sleep whenever they can. A lost wake
// would hang here.
TEST(PhasesTest, EveryRankReadsInOnePhaseWhatAllWroteInTheLastOne) {
  constexpr int kRanks = 3;
  constexpr uint64_t kPhases = 20000;
  std::vector<Mark> marks(kRanks);
  std::vector<base::UniqueFd> notifiers;
  for (int rank = 0; rank < kRanks; ++rank) notifiers.emplace_back(::eventfd(0, EFD_CLOEXEC));
  uint64_t slots[kRanks][2] = {};
  const auto live = [&](int self) {
    View phases(marks.data(), kRanks, self);
    const auto wake = [&](int rank) { ASSERT_EQ(::eventfd_write(notifiers[rank].get(), 1), 0); };
    const auto sleep = [&] {
      eventfd_t notified;
      ASSERT_EQ(::eventfd_read(notifiers[self].get(), &notified), 0);
    };
    for (uint64_t phase = 0; phase < kPhases; ++phase) {
      slots[self][phase % 2] = phase * kRanks + self;
      View::Look look = phases.End(wake);
      while (look == View::Look::kMissing) look = phases.SleepOnce(sleep);
      ASSERT_EQ(look, View::Look::kAllEnded);
      for (int rank = 0; rank < kRanks; ++rank) {
        ASSERT_EQ(slots[rank][phase % 2], phase * kRanks + rank);
      }
    }
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) threads.emplace_back(live, rank);
  for (std::thread& thread : threads) thread.join();
}

TEST(PhasesTest, NamesARankThatIsMissing) {
  std::vector<Mark> marks(3);
  View first(marks.data(), 3, 0), last(marks.data(), 3, 2);
  const auto nobody = [](int) { FAIL(); };
  EXPECT_EQ(last.End(nobody), View::Look::kMissing);
  EXPECT_EQ(first.End(nobody), View::Look::kMissing);
  EXPECT_EQ(first.missing(), 1);
}

TEST(PhasesTest, TheLastRankWakesThoseThatSleep) {
  std::vector<Mark> marks(2);
  View first(marks.data(), 2, 0), last(marks.data(), 2, 1);
  EXPECT_EQ(first.End([](int) { FAIL(); }), View::Look::kMissing);
  int woken = -1;
  EXPECT_EQ(first.SleepOnce([&] { last.End([&](int rank) { woken = rank; }); }),
            View::Look::kAllEnded);
  EXPECT_EQ(woken, 0);
}

TEST(PhasesTest, ACounterThatMakesNoSenseIsAnError) {
  for (const uint64_t nonsense : {uint64_t{3}, uint64_t{1} << 63, ~uint64_t{0}}) {
    std::vector<Mark> marks(2);
    View view(marks.data(), 2, 0);
    marks[1].ended = nonsense;
    EXPECT_EQ(view.End([](int) {}), View::Look::kNonsense) << nonsense;
    EXPECT_EQ(view.missing(), 1);
  }
}

}  // namespace
}  // namespace tutti::comm
