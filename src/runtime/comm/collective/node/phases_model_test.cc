// The phases' own code, with the notifiers at which ranks sleep, through all that two and three
// ranks can do under C++'s memory model: nobody reads what was not written in the last phase, no
// slot is read and written at once, nobody waits for ever. And the same with a fault in it, which
// has to be found, be it only a memory order that is weaker.
// Covers: phases.h.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/comm/collective/node/phases.h"
#include "runtime/comm/model/interleavings.h"
#include "runtime/comm/model/weakened_test_support.h"
#include "runtime/comm/rendezvous/membership/shared_notifier.h"

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)

namespace tutti::comm {
namespace {

enum class PhaseFault { kNone, kOneSlot, kDataAfterTheCounter, kNoSecondLook, kSleepsWithoutAFlag };

struct PhasesCase {
  int ranks;
  uint64_t phases;
  PhaseFault fault = PhaseFault::kNone;
  bool futexes = false;  // ranks sleep at real notifiers, not at the model's, which order no memory
};

// The memory that the ranks share: for each rank its mark, its notifier, and two slots, one for
// even and one for odd phases, which hold a phase's number.
struct Memory {
  explicit Memory(const PhasesCase& phases_case)
      : what(phases_case),
        marks(what.ranks),
        notifiers(what.futexes ? what.ranks : 0),
        slots(2 * what.ranks) {
    for (uint64_t& slot : slots) Interleavings::Share(&slot, sizeof(slot));
  }
  const PhasesCase what;
  std::vector<PhaseMark<ModelAtomic>> marks;
  std::vector<NotifierOf<ModelAtomic, ModelFutex>> notifiers;
  std::vector<uint64_t> slots;
};

class Rank {
 public:
  Rank(Memory& memory, int self)
      : memory_(memory),
        what_(memory.what),
        self_(self),
        phases_(memory.marks.data(), what_.ranks, self) {}

  void Live() {
    for (uint64_t phase = 0; phase < what_.phases; ++phase) {
      Interleavings::Forget(phase);
      if (what_.fault != PhaseFault::kDataAfterTheCounter) Write(phase);
      if (phase > 0) ReadAll(phase - 1);
      EndPhase(phase);
    }
    ReadAll(what_.phases - 1);
  }

 private:
  using View = Phases<ModelAtomic>;
  using Look = typename View::Look;

  uint64_t& SlotOf(int rank, uint64_t phase) {
    return memory_.slots[2 * rank + (what_.fault == PhaseFault::kOneSlot ? 0 : phase % 2)];
  }
  void Write(uint64_t phase) {
    uint64_t& slot = SlotOf(self_, phase);
    Interleavings::Write(&slot);
    slot = phase + 1;
  }
  void ReadAll(uint64_t phase) {
    for (int rank = 0; rank < what_.ranks; ++rank) {
      if (rank == self_) continue;
      uint64_t& slot = SlotOf(rank, phase);
      Interleavings::Read(&slot);
      if (slot != phase + 1) Interleavings::Fail("read what is not of the last phase");
    }
  }
  void EndPhase(uint64_t phase) {
    Look look = phases_.End([this](int rank) { Notify(rank); });
    if (what_.fault == PhaseFault::kDataAfterTheCounter) Write(phase);
    if (look == Look::kMissing && what_.ranks == 2) look = phases_.Again();
    while (look == Look::kMissing) {
      Interleavings::Forget(1000 * (phase + 1) + static_cast<uint64_t>(phases_.missing()));
      look = Sleep();
    }
    if (look == Look::kNonsense) Interleavings::Fail("a counter makes no sense");
  }
  void Notify(int rank) {
    if (!what_.futexes) return Interleavings::Notify(rank);
    memory_.notifiers[rank].Notify();
  }
  void Await() {
    if (!what_.futexes) return Interleavings::AwaitNotification();
    memory_.notifiers[self_].Await(base::Deadline::After(absl::Hours(1)));
  }
  Look Sleep() {
    const auto await = [this] { Await(); };
    if (what_.fault == PhaseFault::kNoSecondLook) memory_.marks[self_].sleeps.store(1);
    if (what_.fault == PhaseFault::kNoSecondLook ||
        what_.fault == PhaseFault::kSleepsWithoutAFlag) {
      await();
      return phases_.Again();
    }
    return phases_.SleepOnce(await);
  }

  Memory& memory_;
  const PhasesCase& what_;
  const int self_;
  View phases_;
};

Interleavings::Result ExplorePhases(const PhasesCase& phases_case,
                                    const ExploreOptions& options = {}) {
  std::unique_ptr<Memory> memory;
  return Interleavings::Explore(
      phases_case.ranks, [&] { memory = std::make_unique<Memory>(phases_case); },
      [&](int rank) { Rank(*memory, rank).Live(); }, options);
}

void ExpectAllWell(const PhasesCase& phases_case, const ExploreOptions& options = {}) {
  const auto result = ExplorePhases(phases_case, options);
  EXPECT_EQ(result.failure, "");
  PrintCounts(absl::StrCat(phases_case.phases, " phases of ", phases_case.ranks, " ranks",
                           phases_case.futexes ? " with notifiers" : ""),
              result);
}

// Four phases: each slot is written twice.
TEST(PhasesModelTest, TwoRanksNeverTearAndNeverLoseAWake) { ExpectAllWell({2, 4}); }

TEST(PhasesModelTest, TwoRanksSleepAtTheirNotifiers) {
  ExpectAllWell({2, 3, PhaseFault::kNone, true});
}

TEST(PhasesModelTest, ThreeRanksNeverReadWhatIsNotThere) { ExpectAllWell({3, 1}); }

// A wake of one phase that comes as late as in the next one. Without a bound it is 7.8 million
// states, a minute of a processor; all of them were explored when the orders were chosen.
TEST(PhasesModelTest, ThreeRanksNeverLoseAWake) { ExpectAllWell({3, 2}, {.most_preemptions = 1}); }

TEST(PhasesModelTest, NeedTheirMemoryOrders) {
  const auto check = WeakenEach([](const auto& weakened) {
    return ExplorePhases({2, 3}, {.weakened = weakened});
  });
  EXPECT_GT(check.tried, 0u);
  EXPECT_THAT(check.not_needed, testing::IsEmpty());
}

TEST(PhasesModelTest, FindsTheTornValueWhenThereIsOneSlot) {
  EXPECT_THAT(ExplorePhases({2, 3, PhaseFault::kOneSlot}).failure,
              testing::StartsWith("data race"));
}

TEST(PhasesModelTest, FindsTheTornValueWhenTheCounterIsStoredBeforeTheData) {
  EXPECT_EQ(ExplorePhases({2, 2, PhaseFault::kDataAfterTheCounter}).failure,
            "read what is not of the last phase");
}

TEST(PhasesModelTest, FindsTheLostWakeWithoutASecondLook) {
  EXPECT_EQ(ExplorePhases({2, 2, PhaseFault::kNoSecondLook}).failure, "nobody can go on");
}

TEST(PhasesModelTest, FindsTheLostWakeWithoutAFlag) {
  EXPECT_EQ(ExplorePhases({2, 1, PhaseFault::kSleepsWithoutAFlag}).failure, "nobody can go on");
}

}  // namespace
}  // namespace tutti::comm

#endif
