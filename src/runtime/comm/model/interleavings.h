// Runs a protocol's own code through everything that it can do, for tests: every interleaving of
// its threads, and in each all that C++'s memory orders allow.
//
// The protocol takes its atomics as a template parameter and is given ModelAtomic. Each of its
// threads becomes a fiber; before it reads shared memory a fiber stops, and the explorer decides
// who goes on and which store is read. It does so in every possible way, depth first: where a run
// ends it goes back to the last choice, as of which it kept the fibers' stacks and the memory. It
// gives up a run that comes to a state where it has been before. A state is the shared memory, and
// for each fiber what it has read since it last called Forget, on which alone what it does next
// depends; two states are taken for equal if 64-bit hashes of them are (at a million states the
// odds of a wrong one are one in 10^7). A fiber does not stop before a store: what others may read
// it does not take away, so nothing is lost if it comes at once.
//
// Memory is that of C++20 (memory_test_support.h, with what it does not cover: load buffering).
// What hardware does, x86 or aarch64, is less than that. Plain bytes that are shared are said with
// Share, and each access to them with Read or Write: a data race fails the run.
//
// One explorer at a time in a process; single-threaded. Without a sanitizer: they do not know
// fibers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include "base/deadline.h"

namespace tutti::comm {

// A place in the protocol's code, and the order that it asks for there.
struct OrderPlace {
  enum class Kind { kLoad, kStore, kUpdate, kFence };
  Kind kind;
  std::string file;
  unsigned line, column;
  std::memory_order order;
  auto operator<=>(const OrderPlace&) const = default;
};

struct WeakenedOrder {
  OrderPlace place;
  std::memory_order order;
};

struct ExploreOptions {
  std::function<void()> end = {};  // looks at each run that ends; a load sees the last store then
  std::optional<WeakenedOrder> weakened = {};  // another order than the code says
  // Runs in which the explorer turns more often from a fiber that could go on are left out
  // (Musuvathi and Qadeer, PLDI 2007: most faults need two). What loads read is not limited.
  int most_preemptions = std::numeric_limits<int>::max();
};

class Interleavings {
 public:
  struct Result {
    std::string failure;  // of the first run that failed, "" if all were well
    size_t runs = 0;
    size_t states = 0;
    std::vector<OrderPlace> orders;  // that were met
  };
  using Body = std::function<void(int fiber)>;

  // `reset` makes the shared state, before the first run; `body(fiber)` is what each fiber does. A
  // run fails when Fail is called, at a data race, or when none of those that are not done can go
  // on (a deadlock, or a lost wake). Runs are broken off and go on from where others were: bodies
  // hold nothing that needs a destructor, and change only what is on their stacks, ModelAtomics,
  // and what Keep or Share was called for.
  static Result Explore(int fibers, const std::function<void()>& reset, const Body& body,
                        const ExploreOptions& options = {});

  // Call it in `reset`: bodies change these bytes, which go back with the rest. Shared ones are
  // also looked at for data races, as one object.
  static void Keep(void* data, size_t size);
  static void Share(void* data, size_t size);

  // Call it in a body: the exploration fails with `what`.
  static void Fail(const std::string& what);
  // Notes that what this fiber has read so far does not matter any more, but for `state`.
  static void Forget(uint64_t state);
  // Notes that an access to shared bytes follows.
  static void Read(const void* data, std::source_location where = std::source_location::current());
  static void Write(const void* data, std::source_location where = std::source_location::current());
  static void Fence(std::memory_order order,
                    std::source_location where = std::source_location::current());

  // A notifier for each fiber: Notify of a fiber, and that fiber's wait, which ends when it was
  // notified and resets it. It orders no memory.
  static void Notify(int fiber);
  static void AwaitNotification();
};

// An atomic word of a model.
class ModelWord {
 public:
  ModelWord();
  using Where = std::source_location;

 protected:
  friend struct ModelFutex;
  uint64_t Load(std::memory_order order, const Where& where) const;
  void Store(uint64_t value, std::memory_order order, const Where& where);
  uint64_t Update(uint64_t (*change)(uint64_t, uint64_t), uint64_t operand, std::memory_order order,
                  const Where& where);

 private:
  size_t index_;
};

template <typename T>
class ModelAtomic : public ModelWord {
 public:
  T load(std::memory_order order = std::memory_order_seq_cst,
         Where where = Where::current()) const {
    return static_cast<T>(Load(order, where));
  }
  void store(T value, std::memory_order order = std::memory_order_seq_cst,
             Where where = Where::current()) {
    Store(static_cast<uint64_t>(value), order, where);
  }
  T exchange(T value, std::memory_order order = std::memory_order_seq_cst,
             Where where = Where::current()) {
    return static_cast<T>(Update([](uint64_t, uint64_t operand) { return operand; },
                                 static_cast<uint64_t>(value), order, where));
  }
  T fetch_add(T value, std::memory_order order = std::memory_order_seq_cst,
              Where where = Where::current()) {
    return static_cast<T>(Update([](uint64_t old, uint64_t operand) { return old + operand; },
                                 static_cast<uint64_t>(value), order, where));
  }
};

// futex(2): a wait sleeps if the word has the value, until a wake. No deadline ends it.
struct ModelFutex {
  static void Wait(const ModelWord& word, uint64_t value, base::Deadline deadline);
  static void Wake(const ModelWord& word);
};

}  // namespace tutti::comm
