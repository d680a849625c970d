// The explorer and its memory, over programs of which it is known what can come out (litmus tests).
#include "runtime/comm/model/interleavings.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <set>

namespace tutti::comm {
namespace {

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr auto kAcquire = std::memory_order_acquire;
constexpr auto kRelease = std::memory_order_release;
constexpr auto kAcqRel = std::memory_order_acq_rel;
constexpr auto kSeqCst = std::memory_order_seq_cst;

// Two words, one plain number, and what the threads note.
struct Litmus {
  ModelAtomic<int> x, y;
  int plain = 0;
  std::array<int, 4> r = {};

  void WritePlain(int value) {
    Interleavings::Write(&plain);
    plain = value;
  }
  int ReadPlain() {
    Interleavings::Read(&plain);
    return plain;
  }
};

using Thread = std::function<void(Litmus&)>;
using Outcome = std::vector<int>;
using Outcomes = std::set<Outcome>;
using ReadOutcome = std::function<Outcome(Litmus&)>;

Outcome Two(Litmus& l) { return {l.r[0], l.r[1]}; }
Outcome Three(Litmus& l) { return {l.r[0], l.r[1], l.r[2]}; }
Outcome Four(Litmus& l) { return {l.r[0], l.r[1], l.r[2], l.r[3]}; }
Outcome Last(Litmus& l) { return {l.x.load(), l.y.load()}; }

struct Found {
  std::string failure;
  Outcomes outcomes;
  bool Has(const Outcome& outcome) const { return outcomes.count(outcome) == 1; }
};

Found All(const std::vector<Thread>& threads, const ReadOutcome& read = Two) {
  std::unique_ptr<Litmus> litmus;
  Found found;
  const auto result = Interleavings::Explore(
      static_cast<int>(threads.size()),
      [&] {
        litmus = std::make_unique<Litmus>();
        Interleavings::Share(&litmus->plain, sizeof(litmus->plain));
        Interleavings::Keep(litmus->r.data(), sizeof(litmus->r));
      },
      [&](int fiber) { threads[fiber](*litmus); },
      {.end = [&] { found.outcomes.insert(read(*litmus)); }});
  found.failure = result.failure;
  return found;
}

// ---- One word ----

TEST(LitmusTest, AThreadNeverSeesAWordGoBack) {
  const auto found = All({[](Litmus& l) {
                            l.x.store(1, kRelaxed);
                            l.x.store(2, kRelaxed);
                          },
                          [](Litmus& l) {
                            l.r[0] = l.x.load(kRelaxed);
                            l.r[1] = l.x.load(kRelaxed);
                          }});
  EXPECT_EQ(found.outcomes, (Outcomes{{0, 0}, {0, 1}, {0, 2}, {1, 1}, {1, 2}, {2, 2}}));
}

TEST(LitmusTest, TwoThreadsAgreeOnTheOrderOfAWordsStores) {
  const auto read = [](Litmus& l, int at) {
    l.r[at] = l.x.load(kRelaxed);
    l.r[at + 1] = l.x.load(kRelaxed);
  };
  const auto found =
      All({[](Litmus& l) { l.x.store(1, kRelaxed); }, [](Litmus& l) { l.x.store(2, kRelaxed); },
           [&](Litmus& l) { read(l, 0); }, [&](Litmus& l) { read(l, 2); }},
          Four);
  EXPECT_TRUE(found.Has({1, 2, 0, 2}));
  EXPECT_TRUE(found.Has({2, 1, 2, 1}));
  EXPECT_FALSE(found.Has({1, 2, 2, 1}));
}

TEST(LitmusTest, ALoadAndAStoreLoseAnUpdate) {
  const Thread add = [](Litmus& l) { l.x.store(l.x.load() + 1); };
  const auto found = All({add, add, add}, Last);
  EXPECT_EQ(found.outcomes, (Outcomes{{1, 0}, {2, 0}, {3, 0}}));
}

TEST(LitmusTest, AReadModifyWriteLosesNone) {
  const Thread add = [](Litmus& l) { l.x.fetch_add(1, kRelaxed); };
  EXPECT_EQ(All({add, add, add}, Last).outcomes, (Outcomes{{3, 0}}));
}

// ---- Message passing ----

Found PassAMessage(std::memory_order store, std::memory_order load) {
  return All({[=](Litmus& l) {
                l.x.store(1, kRelaxed);
                l.y.store(1, store);
              },
              [=](Litmus& l) {
                l.r[0] = l.y.load(load);
                l.r[1] = l.x.load(kRelaxed);
              }});
}

TEST(LitmusTest, AMessageArrivesWithReleaseAndAcquire) {
  EXPECT_EQ(PassAMessage(kRelease, kAcquire).outcomes, (Outcomes{{0, 0}, {0, 1}, {1, 1}}));
  EXPECT_EQ(PassAMessage(kSeqCst, kSeqCst).outcomes, (Outcomes{{0, 0}, {0, 1}, {1, 1}}));
}

TEST(LitmusTest, AMessageNeedsBoth) {
  const Outcomes all = {{0, 0}, {0, 1}, {1, 0}, {1, 1}};
  EXPECT_EQ(PassAMessage(kRelaxed, kAcquire).outcomes, all);
  EXPECT_EQ(PassAMessage(kRelease, kRelaxed).outcomes, all);
}

Found PassPlain(std::memory_order store, std::memory_order load) {
  return All({[=](Litmus& l) {
                l.WritePlain(1);
                l.y.store(1, store);
              },
              [=](Litmus& l) {
                if (l.y.load(load) == 1) l.r[0] = l.ReadPlain();
              }});
}

TEST(LitmusTest, PlainBytesThatArePassedOnAreNoDataRace) {
  const auto found = PassPlain(kRelease, kAcquire);
  EXPECT_EQ(found.failure, "");
  EXPECT_EQ(found.outcomes, (Outcomes{{0, 0}, {1, 0}}));
}

TEST(LitmusTest, ADataRaceIsFoundAndNamesBothPlaces) {
  for (const auto& found : {PassPlain(kRelaxed, kAcquire), PassPlain(kRelease, kRelaxed)}) {
    EXPECT_NE(found.failure.find("data race: a write at interleavings_test.cc:"),
              found.failure.npos)
        << found.failure;
    EXPECT_NE(found.failure.find(" and at interleavings_test.cc:"), found.failure.npos);
  }
}

TEST(LitmusTest, AWriteThatDoesNotHappenAfterAReadIsADataRace) {
  const auto give_back = [](std::memory_order order) {
    return All({[=](Litmus& l) {
                  l.r[0] = l.ReadPlain();
                  l.y.store(1, order);
                },
                [=](Litmus& l) {
                  if (l.y.load(kAcquire) == 1) l.WritePlain(1);
                }});
  };
  EXPECT_EQ(give_back(kRelease).failure, "");
  EXPECT_EQ(give_back(kRelaxed).failure.substr(0, 18), "data race: a read ");
}

// ---- Store buffering ----

Found BufferStores(std::memory_order store, std::memory_order load, int fences) {
  return All({[=](Litmus& l) {
                l.x.store(1, store);
                if (fences > 0) Interleavings::Fence(kSeqCst);
                l.r[0] = l.y.load(load);
              },
              [=](Litmus& l) {
                l.y.store(1, store);
                if (fences > 1) Interleavings::Fence(kSeqCst);
                l.r[1] = l.x.load(load);
              }});
}

TEST(LitmusTest, OfTwoSequentiallyConsistentStoresOneIsSeen) {
  const Outcomes one_is_seen = {{0, 1}, {1, 0}, {1, 1}};
  EXPECT_EQ(BufferStores(kSeqCst, kSeqCst, 0).outcomes, one_is_seen);
  EXPECT_EQ(BufferStores(kRelaxed, kRelaxed, 2).outcomes, one_is_seen);
}

TEST(LitmusTest, OfTwoWeakerStoresNoneMayBeSeen) {
  const Outcomes all = {{0, 0}, {0, 1}, {1, 0}, {1, 1}};
  EXPECT_EQ(BufferStores(kRelease, kAcquire, 0).outcomes, all);
  EXPECT_EQ(BufferStores(kRelease, kSeqCst, 0).outcomes, all);
  EXPECT_EQ(BufferStores(kSeqCst, kAcquire, 0).outcomes, all);
  EXPECT_EQ(BufferStores(kRelease, kAcquire, 1).outcomes, all);
}

// C++ allows {1, 1} as well; so does aarch64, and this model does not.
TEST(LitmusTest, LoadBufferingIsNotCovered) {
  const auto found = All({[](Litmus& l) {
                            l.r[0] = l.x.load(kRelaxed);
                            l.y.store(1, kRelaxed);
                          },
                          [](Litmus& l) {
                            l.r[1] = l.y.load(kRelaxed);
                            l.x.store(1, kRelaxed);
                          }});
  EXPECT_EQ(found.outcomes, (Outcomes{{0, 0}, {0, 1}, {1, 0}}));
}

// ---- Orders of several words ----

TEST(LitmusTest, StoresToTwoWordsMayCrossUnlessTheyAreSequentiallyConsistent) {
  const auto cross = [](std::memory_order order) {
    return All({[=](Litmus& l) {
                  l.x.store(1, order);
                  l.y.store(2, order);
                },
                [=](Litmus& l) {
                  l.y.store(1, order);
                  l.x.store(2, order);
                }},
               Last)
        .outcomes;
  };
  EXPECT_EQ(cross(kRelease), (Outcomes{{1, 1}, {1, 2}, {2, 1}, {2, 2}}));
  EXPECT_EQ(cross(kSeqCst), (Outcomes{{1, 2}, {2, 1}, {2, 2}}));
}

Found ReadIndependentWrites(std::memory_order store, std::memory_order load, bool fenced) {
  const auto fence = [=] {
    if (fenced) Interleavings::Fence(kSeqCst);
  };
  return All({[=](Litmus& l) { l.x.store(1, store); }, [=](Litmus& l) { l.y.store(1, store); },
              [=](Litmus& l) {
                l.r[0] = l.x.load(load);
                fence();
                l.r[1] = l.y.load(load);
              },
              [=](Litmus& l) {
                l.r[2] = l.y.load(load);
                fence();
                l.r[3] = l.x.load(load);
              }},
             Four);
}

TEST(LitmusTest, TwoReadersOfIndependentWritesMayDisagreeWithoutSequentialConsistency) {
  const auto found = ReadIndependentWrites(kRelease, kAcquire, false);
  EXPECT_EQ(found.outcomes.size(), 16u);
  EXPECT_TRUE(found.Has({1, 0, 1, 0}));
}

TEST(LitmusTest, TwoReadersOfIndependentWritesAgreeWithSequentialConsistency) {
  for (const auto& found : {ReadIndependentWrites(kSeqCst, kSeqCst, false),
                            ReadIndependentWrites(kRelaxed, kRelaxed, true)}) {
    EXPECT_EQ(found.outcomes.size(), 15u);
    EXPECT_FALSE(found.Has({1, 0, 1, 0}));
  }
}

Found PassOn(std::memory_order store, std::memory_order load) {
  return All({[=](Litmus& l) { l.x.store(1, store); },
              [=](Litmus& l) {
                if (l.x.load(load) == 1) l.y.store(1, store);
              },
              [=](Litmus& l) {
                l.r[0] = l.y.load(load);
                l.r[1] = l.x.load(kRelaxed);
              }});
}

TEST(LitmusTest, CausalityIsPassedOnByReleaseAndAcquireAlone) {
  EXPECT_FALSE(PassOn(kRelease, kAcquire).Has({1, 0}));
  EXPECT_TRUE(PassOn(kRelaxed, kRelaxed).Has({1, 0}));
}

TEST(LitmusTest, FencesOrderAReadOfAnUnfencedWrite) {
  const auto found = All({[](Litmus& l) { l.x.store(1, kRelaxed); },
                          [](Litmus& l) {
                            l.r[0] = l.x.load(kRelaxed);
                            Interleavings::Fence(kSeqCst);
                            l.r[1] = l.y.load(kRelaxed);
                          },
                          [](Litmus& l) {
                            l.y.store(1, kRelaxed);
                            Interleavings::Fence(kSeqCst);
                            l.r[2] = l.x.load(kRelaxed);
                          }},
                         Three);
  EXPECT_EQ(found.outcomes.size(), 7u);
  EXPECT_FALSE(found.Has({1, 0, 0}));
}

// The first fence comes before the second by the order of x alone: nothing synchronizes them.
TEST(LitmusTest, FencesAreOrderedByTheOrderOfAWord) {
  const auto found = All({[](Litmus& l) {
                            l.y.store(1, kRelaxed);
                            Interleavings::Fence(kSeqCst);
                            l.x.store(1, kRelaxed);
                          },
                          [](Litmus& l) { l.x.store(2, kRelaxed); },
                          [](Litmus& l) {
                            l.r[0] = l.x.load(kRelaxed);
                            Interleavings::Fence(kSeqCst);
                            l.r[1] = l.y.load(kRelaxed);
                          }},
                         [](Litmus& l) {
                           return Outcome{l.r[0], l.r[1], l.x.load()};
                         });
  EXPECT_TRUE(found.Has({2, 0, 1}));
  EXPECT_FALSE(found.Has({2, 0, 2}));
  EXPECT_FALSE(found.Has({1, 0, 1}));
}

// Store(x, seq_cst) and a relaxed store after it may be seen the other way round: aarch64 does so.
// Sequentially consistent operations are ordered among each other, not with those around them.
Found StoreAfterASequentialOne(std::memory_order second, std::memory_order load) {
  return All({[=](Litmus& l) {
                l.x.store(1, kSeqCst);
                l.y.store(1, second);
              },
              [=](Litmus& l) {
                l.r[0] = l.y.load(load);
                l.r[1] = l.x.load(kSeqCst);
              }});
}

TEST(LitmusTest, ASequentiallyConsistentStoreDoesNotHoldBackWeakerOnes) {
  EXPECT_TRUE(StoreAfterASequentialOne(kRelaxed, kRelaxed).Has({1, 0}));
  EXPECT_TRUE(StoreAfterASequentialOne(kRelaxed, kAcquire).Has({1, 0}));
  EXPECT_FALSE(StoreAfterASequentialOne(kRelease, kAcquire).Has({1, 0}));
}

// The same with a fence in the place of one of the two operations, which is late in S.
TEST(LitmusTest, AFenceIsOrderedWithSequentiallyConsistentOperationsThatComeLater) {
  const auto fenced_reader = [](std::memory_order store, std::memory_order load) {
    return All({[=](Litmus& l) {
                  l.x.store(1, kSeqCst);
                  l.y.store(1, store);
                },
                [=](Litmus& l) {
                  l.r[0] = l.y.load(load);
                  Interleavings::Fence(kSeqCst);
                  l.r[1] = l.x.load(kRelaxed);
                }});
  };
  EXPECT_TRUE(fenced_reader(kRelaxed, kRelaxed).Has({1, 0}));
  EXPECT_FALSE(fenced_reader(kRelease, kRelaxed).Has({1, 0}));
  const auto fenced_writer = [](std::memory_order load) {
    return All({[=](Litmus& l) {
                  l.x.store(1, kRelaxed);
                  Interleavings::Fence(kSeqCst);
                  l.y.store(1, kRelaxed);
                },
                [=](Litmus& l) {
                  l.r[0] = l.y.load(load);
                  l.r[1] = l.x.load(kSeqCst);
                }});
  };
  EXPECT_TRUE(fenced_writer(kRelaxed).Has({1, 0}));
  EXPECT_FALSE(fenced_writer(kAcquire).Has({1, 0}));
}

// P0668's example: C++20 allows what C++11 did not, S: the update, y = 3, the load, x = 1.
TEST(LitmusTest, SequentialConsistencyIsNotBoundByWeakerSynchronization) {
  const auto run = [](std::memory_order order) {
    return All({[=](Litmus& l) {
                  l.x.store(1, kSeqCst);
                  l.y.store(1, order);
                },
                [](Litmus& l) {
                  l.r[0] = l.y.fetch_add(1, kSeqCst);
                  l.r[1] = l.y.load(kRelaxed);
                },
                [](Litmus& l) {
                  l.y.store(3, kSeqCst);
                  l.r[2] = l.x.load(kSeqCst);
                }},
               Three);
  };
  EXPECT_TRUE(run(kRelease).Has({1, 3, 0}));
  EXPECT_FALSE(run(kSeqCst).Has({1, 3, 0}));
}

// ---- Release sequences and fences ----

TEST(LitmusTest, AReadModifyWriteContinuesAReleaseSequence) {
  const auto found = All({[](Litmus& l) {
                            l.WritePlain(1);
                            l.x.store(1, kRelease);
                          },
                          [](Litmus& l) { l.x.fetch_add(1, kRelaxed); },
                          [](Litmus& l) {
                            if (l.x.load(kAcquire) == 2) l.r[0] = l.ReadPlain();
                          }});
  EXPECT_EQ(found.failure, "");
  EXPECT_TRUE(found.Has({1, 0}));
}

// Not even one of the same thread: C++20 (P0982).
TEST(LitmusTest, AStoreEndsAReleaseSequence) {
  const auto found = All({[](Litmus& l) {
                            l.WritePlain(1);
                            l.x.store(1, kRelease);
                            l.x.store(2, kRelaxed);
                          },
                          [](Litmus& l) {
                            if (l.x.load(kAcquire) == 2) l.r[0] = l.ReadPlain();
                          }});
  EXPECT_EQ(found.failure.substr(0, 9), "data race");
}

TEST(LitmusTest, AnExchangeTakesAllThatWasReleasedByExchanges) {
  const auto found = [](std::memory_order order) {
    return All({[=](Litmus& l) {
                  l.WritePlain(1);
                  l.x.exchange(1, order);
                },
                [=](Litmus& l) { l.x.exchange(2, order); },
                [](Litmus& l) {
                  l.r[0] = l.x.exchange(0, kAcquire);
                  l.r[1] = l.x.load(kRelaxed);
                }});
  };
  EXPECT_EQ(found(kRelease).failure, "");
  EXPECT_TRUE(found(kRelease).Has({2, 0}));
}

Found PassWithFences(std::memory_order first, std::memory_order second) {
  return All({[=](Litmus& l) {
                l.WritePlain(1);
                Interleavings::Fence(first);
                l.y.store(1, kRelaxed);
              },
              [=](Litmus& l) {
                if (l.y.load(kRelaxed) == 0) return;
                Interleavings::Fence(second);
                l.r[0] = l.ReadPlain();
              }});
}

TEST(LitmusTest, FencesPassAMessage) {
  for (const auto release : {kRelease, kAcqRel, kSeqCst}) {
    for (const auto acquire : {kAcquire, kAcqRel, kSeqCst}) {
      EXPECT_EQ(PassWithFences(release, acquire).failure, "");
    }
  }
  EXPECT_EQ(PassWithFences(kAcquire, kAcquire).failure.substr(0, 9), "data race");
  EXPECT_EQ(PassWithFences(kRelease, kRelease).failure.substr(0, 9), "data race");
}

// ---- Waiting ----

TEST(InterleavingsTest, FindsADeadlock) {
  const auto result = Interleavings::Explore(
      2, [] {}, [](int) { Interleavings::AwaitNotification(); });
  EXPECT_EQ(result.failure, "nobody can go on");
}

TEST(InterleavingsTest, AFutexDoesNotSleepOverAWake) {
  const auto found =
      All({[](Litmus& l) {
             l.x.store(1, kRelaxed);
             ModelFutex::Wake(l.x);
           },
           [](Litmus& l) { ModelFutex::Wait(l.x, 0, base::Deadline::After(absl::Hours(1))); }});
  EXPECT_EQ(found.failure, "");
}

TEST(InterleavingsTest, AFutexSleepsOverAStoreThatComesAfterTheWake) {
  const auto found =
      All({[](Litmus& l) {
             ModelFutex::Wake(l.x);
             l.x.store(1, kRelaxed);
           },
           [](Litmus& l) { ModelFutex::Wait(l.x, 0, base::Deadline::After(absl::Hours(1))); }});
  EXPECT_EQ(found.failure, "nobody can go on");
}

#endif

}  // namespace
}  // namespace tutti::comm
