// Implements the explorer behind interleavings.h: its fibers, its choices and what it goes back to.
#pragma once

#include <setjmp.h>

#include <memory>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "runtime/comm/model/interleavings.h"
#include "runtime/comm/model/memory_test_support.h"
#include "runtime/comm/model/mix_test_support.h"

namespace tutti::comm {

inline constexpr size_t kFiberStack = 64 << 10;
// More than what Stop, and setjmp in it, have on the stack.
inline constexpr size_t kFiberFrame = 512;

// What a fiber that has stopped will do when it goes on.
struct FiberStep {
  enum Step { kGo, kLoad, kStore, kUpdate, kSleep, kAsleep, kAwaitNotification, kNothing };
  Step step = kGo;
  size_t word = 0;
  std::memory_order order = std::memory_order_seq_cst;
  uint64_t operand = 0;
  ModelMemory::Change change = nullptr;
};

// Where a fiber is.
struct FiberPlace {
  jmp_buf context;
  size_t used = 0;  // bytes of its stack
  FiberStep next;
  uint64_t read = 0;
  bool notified = false;
  uint64_t history = 0;
};

struct ModelFiber : FiberPlace {
  std::unique_ptr<char[]> stack = std::make_unique<char[]>(kFiberStack);
  char* top() const { return stack.get() + kFiberStack; }
};

// All that the next action depends on.
struct ModelMoment {
  std::vector<FiberPlace> places;
  ModelMemory memory{0, false};
  int last = 0, preemptions = 0;
  std::vector<char> bytes;  // of the stacks, and what is to be kept
};

// A fiber goes on, and its next step happens at a position in its word's order.
struct ModelAction {
  int fiber;
  int position;
};

// A choice: the action taken, of all that there were at that moment, which is kept if there are
// others.
struct ModelChoice {
  size_t taken = 0;
  std::vector<ModelAction> actions;
  ModelMoment before;
};

struct SharedBytes {
  const char* data;
  size_t size;
  size_t plain;
};

class Explorer {
 public:
  Explorer(int fibers, bool with_fences, const ExploreOptions& options)
      : with_fences_(with_fences),
        options_(options),
        fibers_(static_cast<size_t>(fibers)),
        memory_(fibers, with_fences) {}

  Interleavings::Result Explore(const std::function<void()>& reset,
                                const Interleavings::Body& body);
  bool lacks_fences() const { return lacks_fences_; }

  // ---- What fibers call ----

  void Enter();
  size_t NewWord() { return memory_.AddWord(0); }
  void Keep(void* data, size_t size) { kept_.push_back({static_cast<char*>(data), size}); }
  void Share(void* data, size_t size) {
    Keep(data, size);
    shared_.push_back({static_cast<const char*>(data), size, memory_.AddPlain()});
  }
  uint64_t Load(size_t word, std::memory_order order, const std::source_location& where) {
    if (!running_) return memory_.Latest(word);
    return Read({FiberStep::kLoad, word, OrderAt(OrderPlace::Kind::kLoad, order, where)});
  }
  uint64_t Update(size_t word, ModelMemory::Change change, uint64_t operand,
                  std::memory_order order, const std::source_location& where) {
    return Read({FiberStep::kUpdate, word, OrderAt(OrderPlace::Kind::kUpdate, order, where),
                 operand, change});
  }
  void Store(size_t word, uint64_t value, std::memory_order order,
             const std::source_location& where) {
    if (!running_) return memory_.Initialise(word, value);
    order = OrderAt(OrderPlace::Kind::kStore, order, where);
    const int position = OnlyPosition(word, order);
    if (position < 0) return Stop({FiberStep::kStore, word, order, value});
    memory_.Store(current_, word, position, value, order);
    memory_.Tidy();
  }
  void Fence(std::memory_order order, const std::source_location& where) {
    if (!with_fences_) {
      lacks_fences_ = true;
      return Fail("a fence");
    }
    memory_.Fence(current_, OrderAt(OrderPlace::Kind::kFence, order, where));
  }
  void Access(const void* data, bool is_write, const std::source_location& where);
  void Notify(int fiber) {
    Stop({FiberStep::kGo});
    fibers_[fiber].notified = true;
  }
  void AwaitNotification() {
    Stop({FiberStep::kAwaitNotification});
    current().notified = false;
  }
  void Wake(size_t word) {
    Stop({FiberStep::kGo});
    memory_.Wake(current_, word);
    for (ModelFiber& fiber : fibers_) {
      if (fiber.next.step == FiberStep::kAsleep && fiber.next.word == word)
        fiber.next = {FiberStep::kGo};
    }
  }
  // What the system saw decides whether it sleeps; the thread does not hear of it.
  void Sleep(size_t word, uint64_t value) {
    Stop({.step = FiberStep::kSleep, .word = word, .operand = value});
    if (current().read != 0) Stop({.step = FiberStep::kAsleep, .word = word});
  }
  void Fail(const std::string& what) {
    if (result_.failure.empty()) result_.failure = what;
  }
  void Forget(uint64_t state) { current().history = Mix(0, state); }

 private:
  ModelFiber& current() { return fibers_[current_]; }
  [[gnu::noinline]] void Stop(const FiberStep& next) {
    current().next = next;
    current().used = UsedBelow(__builtin_frame_address(0));
    current().history = Mix(current().history, 0);  // a step further in the program
    if (_setjmp(current().context) == 0) _longjmp(main_, 1);
  }
  size_t UsedBelow(void* frame) {
    return static_cast<size_t>(current().top() - static_cast<char*>(frame)) + kFiberFrame;
  }
  // Returns the position of a store; -1 if there are several. It is a function of its own, since a
  // fiber that is stopped may go back and end more than once, with whatever objects are on its
  // stack.
  int OnlyPosition(size_t word, std::memory_order order) const {
    const std::vector<int> positions = memory_.Stores(current_, word, order);
    return positions.size() == 1 ? positions.front() : -1;
  }
  uint64_t Read(const FiberStep& next) {
    Stop(next);
    current().history = Mix(current().history, current().read + 1);
    return current().read;
  }
  std::memory_order OrderAt(OrderPlace::Kind kind, std::memory_order order,
                            const std::source_location& where);

  void MakeFibers();
  void Actions(std::vector<ModelAction>& actions) const;
  std::vector<int> PositionsOf(int fiber) const;
  void Perform(const ModelAction& action);
  void Step(ModelFiber& fiber, int position);
  void Remember(ModelMoment& moment) const;
  void GoBackTo(const ModelMoment& moment);
  ModelChoice& NewChoice();
  uint64_t HashOfState() const;
  bool LastMustGoOn() const {
    return preemptions_ == options_.most_preemptions && !PositionsOf(last_).empty();
  }
  void Run();
  void End();
  bool Backtrack();

  const bool with_fences_;
  const ExploreOptions& options_;
  const Interleavings::Body* body_ = nullptr;
  std::vector<ModelFiber> fibers_;
  ModelMemory memory_;
  jmp_buf main_;
  int current_ = 0;
  int last_ = 0;  // the fiber that took the last step
  int preemptions_ = 0;
  bool running_ = false;
  bool lacks_fences_ = false;
  std::vector<ModelChoice> path_;  // those from depth_ on are of runs before
  size_t depth_ = 0;
  std::vector<std::pair<char*, size_t>> kept_;
  std::vector<SharedBytes> shared_;
  absl::flat_hash_set<uint64_t> seen_;
  absl::flat_hash_map<uint64_t, std::memory_order> orders_;  // by place, as they are taken
  std::set<OrderPlace> places_;
  Interleavings::Result result_;
};

// The one that is at work.
inline Explorer* explorer = nullptr;

}  // namespace tutti::comm
