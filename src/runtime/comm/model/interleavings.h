// Runs a protocol's own code through every interleaving of its steps, for tests.
//
// The protocol takes its atomics as a template parameter and is given ModelAtomic. Each of its
// threads becomes a fiber; before every access to shared memory a fiber stops, and the explorer
// decides who goes on. It does so in every possible way, depth first: where a run ends it goes back
// to the last choice, as of which it kept the fibers' stacks and the memory. It gives up a run that
// comes to a state where it has been before. A state is the shared memory, what is in the store
// buffers, and for each fiber what it has read since it last called Forget, on which alone what it
// does next depends; two states are taken for equal if 64-bit hashes of them are (at a million
// states the odds of a wrong one are one in 10^7).
//
// Memory is that of x86 (total store order): a store that is not sequentially consistent goes into
// its fiber's store buffer and reaches memory later, in order, whenever the explorer likes; a
// sequentially consistent one, and an exchange, wait until the buffer is empty.
//
// One explorer at a time in a process; single-threaded. Without a sanitizer: they do not know
// fibers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tutti::comm {

class Interleavings {
 public:
  struct Result {
    std::string failure;  // of the first run that failed, "" if all were well
    size_t runs = 0;
    size_t states = 0;
  };

  // `reset` makes the shared state, before the first run; `body(fiber)` is what each fiber does. A
  // run fails when a fiber calls Fail, or when none of those that are not done can go on (a
  // deadlock, or a lost wake). Runs are broken off and go on from where others were: bodies hold
  // nothing that needs a destructor, and change only what is on their stacks, ModelAtomics, and
  // what Keep was called for.
  static Result Explore(int fibers, const std::function<void()>& reset,
                        const std::function<void(int fiber)>& body);

  // For `reset`: bodies change these bytes, which go back with the rest.
  static void Keep(void* data, size_t size);

  // For bodies.
  static void Fail(const std::string& what);
  // What this fiber has read so far does not matter any more, but for `state`.
  static void Forget(uint64_t state);

  // A bell for each fiber: Ring of a fiber, and its wait, which ends when it was rung and silences
  // it.
  static void Ring(int fiber);
  static void AwaitBell();
};

// Shared memory of a model: words that ModelAtomics are. `order` is std::memory_order's.
class ModelWord {
 public:
  ModelWord();

 protected:
  uint64_t Load() const;
  void Store(uint64_t value, bool sequential);
  uint64_t Exchange(uint64_t value);

 private:
  size_t index_;
};

template <typename T>
class ModelAtomic : private ModelWord {
 public:
  T load(std::memory_order = std::memory_order_seq_cst) const { return static_cast<T>(Load()); }
  void store(T value, std::memory_order order = std::memory_order_seq_cst) {
    Store(static_cast<uint64_t>(value), order == std::memory_order_seq_cst);
  }
  T exchange(T value, std::memory_order = std::memory_order_seq_cst) {
    return static_cast<T>(Exchange(static_cast<uint64_t>(value)));
  }
};

}  // namespace tutti::comm
