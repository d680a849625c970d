// SequentialOrder is the single total order S of sequentially consistent operations (C++20,
// [atomics.order]), as far as it is determined: which of them must come before which. A run is
// possible as long as these constraints have no cycle. S is not the order in which the explorer
// takes the steps: a sequentially consistent store and a relaxed one after it may reach another
// thread the other way round, as they do on aarch64.
//
// Coherence-ordered before (the standard's words) is decided by positions in the word's
// modification order: a store at p comes before a load of it, which comes before a store at p + 1.
//
// Operations that no later one can come before any more are dropped: without a way in they are on
// no cycle. Those that are left are sorted by thread, so that equal states look equal.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tutti::comm {

inline constexpr size_t kMostModelWords = 16;
// A position in each word's modification order. The first store that a thread may still read has 0.
using Positions = std::array<int8_t, kMostModelWords>;

// Sets of operations are bits. A bit that comes in, or goes, moves those behind it.
inline uint64_t BitsBelow(size_t at) { return (uint64_t{1} << at) - 1; }
inline uint64_t InsertBit(uint64_t bits, size_t at) {
  return (bits & BitsBelow(at)) | (bits & ~BitsBelow(at)) << 1;
}
inline uint64_t RemoveBit(uint64_t bits, size_t at) {
  return (bits & BitsBelow(at)) | (bits >> 1 & ~BitsBelow(at));
}

// Ends the test program when a model grows beyond what it can hold.
void RequireOfModel(bool holds, const char* what);

// An access of a word: of a read-modify-write, its store.
struct WordAccess {
  size_t word;
  int position;
  bool is_store;
};

class SequentialOrder {
 public:
  static constexpr size_t kMost = 60;  // operations at a time

  // All that follows says false where no order is left; the object is of no use then.

  // Notes that a thread, of which the operations in `known` happen before this, accesses a word.
  bool Access(uint64_t known, const WordAccess& access);
  // Adds the same access as an operation of S, which gets the bit `at` (At).
  bool AddAccess(size_t at, int thread, uint64_t known, const WordAccess& access);
  // Adds a fence, and what its thread has seen.
  void AddFence(size_t at, int thread, uint64_t known, const Positions& seen);
  // Returns the bit of a thread's next operation.
  size_t At(int thread) const;

  // Notes that a store comes into a word's modification order at a position.
  void Shift(size_t word, int position);
  // Forgets the first `count` stores of a word.
  void Forget(size_t word, int count);
  // Returns an operation that can be dropped; size() if there is none.
  size_t Droppable() const;
  void Drop(size_t at);

  size_t size() const { return operations_.size(); }
  uint64_t Hash() const;

 private:
  struct Operation {
    int thread = 0;
    bool is_fence = false;
    WordAccess access = {};  // unless it is a fence
    uint64_t before = 0;     // all that must come before it
    // For a fence, by word: the last store that happened before it, and the first access that it
    // happened before. A store at p is 2 p, a load 2 p + 1.
    Positions seen = {};
    Positions first_after = {};
  };

  bool Order(size_t first, size_t second);
  void Insert(size_t at, int thread, uint64_t known);

  std::vector<Operation> operations_;
};

}  // namespace tutti::comm
