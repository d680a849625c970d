// ModelMemory is the shared memory of a model, as C++20 has it: a machine of messages and views.
//
// The memory keeps, for each atomic word, all stores that a thread may still read, in modification
// order. A thread has a view: for each word, the last store that it has read or that happened
// before it. It reads any store from there on; its own stores go anywhere behind that one, but not
// between a read-modify-write and the store that this has read. A store carries a view: its
// thread's if it is a release, that of the thread's last release fence if not, and with it, for a
// read-modify-write, that of the store that it has read (a release sequence). A load that is an
// acquire joins that view to its thread's; after one that is not, an acquire fence does.
// Sequentially consistent operations are ordered by SequentialOrder.
//
// Plain bytes have one value, since in a program without data races every read sees the last write
// that happened before it. An access that does not happen after the last write, or a write that
// does not happen after the last reads, is a data race.
//
// This is RC11 (Lahav et al., "Repairing Sequential Consistency in C/C++11", PLDI 2017), as a
// machine in the manner of Kang et al., "A Promising Semantics for Relaxed-Memory Concurrency"
// (POPL 2017) without its promises, with S and release sequences of C++20 (P0668, P0982). Without
// promises means that a thread takes its steps in the order of the program: no load sees a store
// that depends on it, or that merely comes later in a circle of such threads (load buffering).
//
// What no thread can read any more is forgotten, so that states that do not differ are equal.
#pragma once

#include <atomic>
#include <cstdint>
#include <source_location>
#include <string>
#include <vector>

#include "runtime/comm/model/sequential_order_test_support.h"

namespace tutti::comm {

inline bool Acquires(std::memory_order order) {
  return order != std::memory_order_relaxed && order != std::memory_order_release;
}
inline bool Releases(std::memory_order order) {
  return order == std::memory_order_release || order == std::memory_order_acq_rel ||
         order == std::memory_order_seq_cst;
}

class ModelMemory {
 public:
  using Change = uint64_t (*)(uint64_t value, uint64_t operand);

  ModelMemory(int threads, bool with_fences);

  size_t AddWord(uint64_t value);
  size_t AddPlain();

  // Return where a thread can do these: for a load, the store that it reads; for a store, its
  // position; for a read-modify-write, the store that it reads. At least one.
  std::vector<int> Loads(int thread, size_t word, std::memory_order order) const;
  std::vector<int> Stores(int thread, size_t word, std::memory_order order) const;
  std::vector<int> Updates(int thread, size_t word, std::memory_order order) const;

  // Return what was read.
  uint64_t Load(int thread, size_t word, int position, std::memory_order order);
  void Store(int thread, size_t word, int position, uint64_t value, std::memory_order order);
  uint64_t Update(int thread, size_t word, int position, Change change, uint64_t operand,
                  std::memory_order order);
  void Fence(int thread, std::memory_order order);
  uint64_t Latest(size_t word) const { return words_[word].back().value; }
  void Initialise(size_t word, uint64_t value) { words_[word].back().value = value; }

  // Wakes as futex(2) does. Before it sleeps the system looks at the word: it sees what a thread
  // had seen that woke at this word before. That is all that is assumed of it.
  void Wake(int thread, size_t word);
  // Returns whether the system may see `value`, or anything else.
  bool MaySee(int thread, size_t word, uint64_t value, bool same) const;

  // Returns "", or the data race.
  std::string ReadPlain(int thread, size_t plain, const std::source_location& where);
  std::string WritePlain(int thread, size_t plain, const std::source_location& where);

  void Finish(int thread);
  // Forgets what cannot be read any more. To be called after each step.
  void Tidy();
  uint64_t Hash() const;

 private:
  struct View {
    Positions seen = {};
    uint64_t plain = ~uint64_t{0};  // the accesses to plain bytes that happened before
    uint64_t known = 0;             // the operations of S that did

    void Join(const View& other);
  };
  struct Message {
    uint64_t value = 0;
    View released = {};
    bool follows = false;  // a read-modify-write's, which has read the one before
  };
  struct Thread {
    View now;
    View later;   // what an acquire fence adds
    View fenced;  // as of the last release fence
    bool done = false;
  };
  struct Plain {
    std::source_location write;
    std::vector<std::source_location> reads;  // each thread's last
  };

  template <typename Function>
  void ForEachView(const Function& function);
  std::vector<int> Places(int thread, size_t word) const;
  bool AddToOrder(SequentialOrder& order, int thread, const WordAccess& access,
                  std::memory_order memory_order, size_t* at) const;
  bool IsPossible(int thread, const WordAccess& access, std::memory_order order) const;
  void Commit(int thread, const WordAccess& access, std::memory_order order);
  void Insert(size_t word, int position, Message message);
  void TakeIn(Thread& thread, const View& released, std::memory_order order) const;
  View Released(const Thread& thread, std::memory_order order) const;
  uint64_t PlainBit(size_t plain, int reader) const;  // reader -1: the write
  void NotePlain(int thread, uint64_t bits, uint64_t own);
  View Floor() const;
  void ForgetBelow(size_t word, int floor);

  bool with_fences_;
  std::vector<Thread> threads_;
  std::vector<std::vector<Message>> words_;
  Positions woken_ = {};  // what the system sees at least
  std::vector<Plain> plain_;
  SequentialOrder order_;
};

}  // namespace tutti::comm
