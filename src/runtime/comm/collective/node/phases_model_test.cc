// The phases' own code through all interleavings of two and three ranks, with store buffers: nobody
// reads what was not written in the last phase, nobody waits for ever. And the same with a fault in
// it, which has to be found.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "runtime/comm/collective/node/phases.h"
#include "runtime/comm/model/interleavings.h"

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)

namespace tutti::comm {
namespace {

// Stores that should be sequentially consistent and are not.
template <typename T>
class WeakAtomic : public ModelAtomic<T> {
 public:
  void store(T value, std::memory_order = std::memory_order_seq_cst) {
    ModelAtomic<T>::store(value, std::memory_order_release);
  }
};

enum class PhaseFault {
  kNone,
  kNoData,
  kOneSlot,
  kDataAfterTheCounter,
  kNoSecondLook,
  kSleepsWithoutAFlag
};

// A rank's slot of one parity: two words, which are to be of one phase.
struct Slot {
  ModelAtomic<uint64_t> first, second;
};

template <template <typename> class Atomic>
struct Memory {
  explicit Memory(int ranks) : marks(ranks), slots(2 * ranks) {}
  std::vector<PhaseMark<Atomic>> marks;
  std::vector<Slot> slots;
};

template <template <typename> class Atomic>
class Rank {
 public:
  Rank(Memory<Atomic>& memory, int ranks, int self, PhaseFault fault)
      : memory_(memory),
        ranks_(ranks),
        self_(self),
        fault_(fault),
        phases_(memory.marks.data(), ranks, self) {}

  void Live(uint64_t phases) {
    for (uint64_t phase = 0; phase < phases; ++phase) {
      Interleavings::Forget(phase);
      if (fault_ != PhaseFault::kDataAfterTheCounter) Write(phase);
      if (phase > 0) ReadAll(phase - 1);
      EndPhase(phase);
    }
    ReadAll(phases - 1);
  }

 private:
  using View = Phases<Atomic>;
  using Look = typename View::Look;

  Slot& SlotOf(int rank, uint64_t phase) {
    return memory_.slots[2 * rank + (fault_ == PhaseFault::kOneSlot ? 0 : phase % 2)];
  }
  void Write(uint64_t phase) {
    if (fault_ == PhaseFault::kNoData) return;
    Slot& slot = SlotOf(self_, phase);
    slot.first.store(phase + 1, std::memory_order_relaxed);
    slot.second.store(phase + 1, std::memory_order_relaxed);
  }
  void ReadAll(uint64_t phase) {
    if (fault_ == PhaseFault::kNoData) return;
    for (int rank = 0; rank < ranks_; ++rank) {
      if (rank == self_) continue;
      Slot& slot = SlotOf(rank, phase);
      if (slot.first.load(std::memory_order_relaxed) != phase + 1 ||
          slot.second.load(std::memory_order_relaxed) != phase + 1) {
        Interleavings::Fail("read what is not of the last phase");
      }
    }
  }
  void EndPhase(uint64_t phase) {
    Look look = phases_.End([](int rank) { Interleavings::Ring(rank); });
    if (fault_ == PhaseFault::kDataAfterTheCounter) Write(phase);
    if (look == Look::kMissing && ranks_ == 2) look = phases_.Again();
    while (look == Look::kMissing) look = Sleep();
    if (look == Look::kNonsense) Interleavings::Fail("a counter makes no sense");
  }
  Look Sleep() {
    if (fault_ == PhaseFault::kNoSecondLook) {
      memory_.marks[self_].sleeps.store(1);
      Interleavings::AwaitBell();
      return phases_.Again();
    }
    if (fault_ == PhaseFault::kSleepsWithoutAFlag) {
      Interleavings::AwaitBell();
      return phases_.Again();
    }
    return phases_.SleepOnce([] { Interleavings::AwaitBell(); });
  }

  Memory<Atomic>& memory_;
  const int ranks_;
  const int self_;
  const PhaseFault fault_;
  View phases_;
};

template <template <typename> class Atomic = ModelAtomic>
Interleavings::Result ExplorePhases(int ranks, uint64_t phases,
                                    PhaseFault fault = PhaseFault::kNone) {
  std::unique_ptr<Memory<Atomic>> memory;
  return Interleavings::Explore(
      ranks, [&] { memory = std::make_unique<Memory<Atomic>>(ranks); },
      [&](int rank) { Rank<Atomic>(*memory, ranks, rank, fault).Live(phases); });
}

// Four phases: each slot is written twice.
TEST(PhasesModelTest, TwoRanksNeverTearAndNeverLoseAWake) {
  const auto result = ExplorePhases(2, 4);
  EXPECT_EQ(result.failure, "");
  EXPECT_GT(result.states, 10000u);
}

TEST(PhasesModelTest, ThreeRanksNeverReadWhatIsNotThere) {
  const auto result = ExplorePhases(3, 1);
  EXPECT_EQ(result.failure, "");
  EXPECT_GT(result.states, 100000u);
}

// A wake of one phase that comes as late as in the next one.
TEST(PhasesModelTest, ThreeRanksNeverLoseAWake) {
  const auto result = ExplorePhases(3, 2, PhaseFault::kNoData);
  EXPECT_EQ(result.failure, "");
  EXPECT_GT(result.states, 100000u);
}

TEST(PhasesModelTest, FindsTheTornValueWhenThereIsOneSlot) {
  EXPECT_EQ(ExplorePhases(2, 3, PhaseFault::kOneSlot).failure,
            "read what is not of the last phase");
}

TEST(PhasesModelTest, FindsTheTornValueWhenTheCounterIsStoredBeforeTheData) {
  EXPECT_EQ(ExplorePhases(2, 2, PhaseFault::kDataAfterTheCounter).failure,
            "read what is not of the last phase");
}

TEST(PhasesModelTest, FindsTheLostWakeWithoutASecondLook) {
  EXPECT_EQ(ExplorePhases(2, 2, PhaseFault::kNoSecondLook).failure, "nobody can go on");
}

TEST(PhasesModelTest, FindsTheLostWakeWithoutAFlag) {
  EXPECT_EQ(ExplorePhases(2, 1, PhaseFault::kSleepsWithoutAFlag).failure, "nobody can go on");
}

TEST(PhasesModelTest, FindsTheLostWakeWhenStoresAreNotSequentiallyConsistent) {
  EXPECT_EQ(ExplorePhases<WeakAtomic>(2, 2).failure, "nobody can go on");
}

}  // namespace
}  // namespace tutti::comm

#endif
