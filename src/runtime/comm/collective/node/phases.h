// Phases keeps the ranks of a node in step in shared memory, without locks.
//
// Everything that they do together is cut into phases, which all of them count alike. A rank ends
// phase k by storing k + 1, the number of phases it has ended, and is in phase k + 1 when it has
// seen that all have ended phase k; between the two it touches nothing. So all ranks that touch
// shared memory at a moment are in the same phase. Every rank has two slots, and in phase k it
// writes its own slot k % 2 alone, and reads those of parity (k - 1) % 2 alone. Hence nobody reads
// what is being written, and what a rank has written in phase k is read in phase k + 1 and is
// written over in phase k + 2, which no rank enters before all readers have ended phase k + 1.
//
// No torn value: what a rank wrote comes before its store of `ended` (release), and who has seen
// that store (acquire) sees it all. The same pair orders what a rank has read before what another
// writes there two phases later.
//
// No deadlock: a rank waits for another only to end a phase that it has itself ended already. Take
// the rank that has ended the fewest phases: it waits for nobody.
//
// No lost wake. A rank that sleeps stores its `sleeps` flag and then looks at all counters again; a
// rank that ends a phase stores its counter, looks at all counters, and if all have ended the
// phase, then looks at all flags. All of these are sequentially consistent, so they have one order.
// Let L be the last store of a counter in a phase. The rank that made it sees all counters, so it
// looks at the flags. Of a sleeper S, either the flag was stored before L's rank looked at it, and
// S is woken; or after that, hence after L, and the look of S that follows sees all counters and S
// does not sleep. Nobody else has to wake anybody: one wake for each sleeper and phase. A wake that
// comes late (its rank was stopped between taking the flag and notifying) finds a sleeper of a
// later phase, which looks, stores its flag anew and looks again: the argument holds from that
// store on. The exchange that takes a flag needs no order: it only decides which of several wakers
// notifies.
//
// The counters are a peer's to write, so they are checked: a rank that waits for phase k sees k or
// k + 1, or k - 1 and waits. Anything else is nonsense, and an error, not an access.
//
// The atomics are a parameter so that phases_model_test.cc can run this very code through all that
// C++'s memory model allows. It also shows that no order here is stronger than needed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tutti::comm {

// One rank's place in shared memory. Zero is the beginning. Fixed layout, lock-free.
template <template <typename> class Atomic>
struct PhaseMark {
  alignas(64) Atomic<uint64_t> ended;   // stored by its rank alone
  alignas(64) Atomic<uint32_t> sleeps;  // set by its rank, cleared by who wakes it
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

// One rank's view. Thread-compatible.
template <template <typename> class Atomic>
class Phases {
 public:
  using Mark = PhaseMark<Atomic>;
  enum class Look { kAllEnded, kMissing, kNonsense };

  Phases(Mark* marks, int ranks, int self) : marks_(marks), ranks_(ranks), self_(self) {}

  // Returns the phase that this rank is in, from 0.
  uint64_t phase() const { return phase_; }
  // Returns, after kMissing, a rank that has not ended the phase; after kNonsense, the one whose
  // counter it is.
  int missing() const { return next_; }

  // Ends the phase for this rank, looks once whether all have, and if so calls wake(rank) for each
  // that sleeps.
  template <typename Wake>
  Look End(const Wake& wake) {
    marks_[self_].ended.store(++phase_, std::memory_order_seq_cst);
    next_ = 0;
    const Look look = Again(std::memory_order_seq_cst);
    if (look == Look::kAllEnded) WakeSleepers(wake);
    return look;
  }

  // Looks again whether all have ended the phase that this rank ended last, and returns what it
  // finds.
  Look Again(std::memory_order order = std::memory_order_acquire) {
    for (; next_ < ranks_; ++next_) {
      const uint64_t ahead = marks_[next_].ended.load(order) - phase_;
      if (ahead + 1 == 0) return Look::kMissing;
      if (ahead > 1) return Look::kNonsense;
    }
    return Look::kAllEnded;
  }

  // Calls sleep(), which returns when this rank's notifier has been notified (and resets it) or for
  // any other reason, unless there is no need to; and looks again.
  template <typename Sleep>
  Look SleepOnce(const Sleep& sleep) {
    Mark& own = marks_[self_];
    own.sleeps.store(1, std::memory_order_seq_cst);
    if (Again(std::memory_order_seq_cst) == Look::kMissing) sleep();
    own.sleeps.store(0, std::memory_order_relaxed);
    return Again();
  }

 private:
  template <typename WakeOne>
  void WakeSleepers(const WakeOne& wake) {
    for (int rank = 0; rank < ranks_; ++rank) {
      if (marks_[rank].sleeps.load(std::memory_order_seq_cst) != 0 &&
          marks_[rank].sleeps.exchange(0, std::memory_order_relaxed) != 0) {
        wake(rank);
      }
    }
  }

  Mark* const marks_;
  const int ranks_;
  const int self_;
  uint64_t phase_ = 0;
  int next_ = 0;  // those before it have ended the phase
};

}  // namespace tutti::comm
