// The explorer, and its own tests: programs of which it is known what can come out.
#include "runtime/comm/model/interleavings.h"

#include <gtest/gtest.h>
#include <setjmp.h>
#include <ucontext.h>

#include <memory>
#include <set>
#include <utility>

#include "absl/container/flat_hash_set.h"

namespace tutti::comm {
namespace {

constexpr size_t kStack = 64 << 10;

uint64_t Mix(uint64_t hash, uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15 + (hash << 6) + (hash >> 2);
  hash *= 0xff51afd7ed558ccd;
  return hash ^ hash >> 32;
}

// What a fiber that has stopped will do when it goes on.
enum class Next { kPlain, kNeedsEmptyBuffer, kNeedsBell, kNothing };

struct Fiber {
  jmp_buf context;
  jmp_buf beginning;
  bool begun = false;
  std::unique_ptr<char[]> stack = std::make_unique<char[]>(kStack);
  Next next = Next::kPlain;
  bool rung = false;
  uint64_t history = 0;
  std::vector<std::pair<size_t, uint64_t>> buffer;  // stores under way: word, value
};

// One choice that was made: `action`, the `taken`th of `of`.
struct Choice {
  int taken;
  int of;
  int action = 0;
};

class Explorer {
 public:
  Explorer(int fibers, const std::function<void()>& reset, const std::function<void(int)>& body)
      : reset_(reset), body_(body), fibers_(fibers) {}
  void MakeFibers();

  Interleavings::Result Explore() {
    do {
      Run();
      ++result_.runs;
    } while (result_.failure.empty() && Backtrack());
    result_.states = seen_.size();
    return result_;
  }

  // ---- What fibers call ----

  Fiber& current() { return fibers_[current_]; }
  int current_number() const { return current_; }
  size_t NewWord() {
    words_.push_back(0);
    return words_.size() - 1;
  }
  void Stop(Next next) {
    if (!running_) return;
    current().next = next;
    current().history = Mix(current().history, 0);  // a step further in the program
    if (_setjmp(current().context) == 0) _longjmp(main_, 1);
  }
  uint64_t Load(size_t word) {
    Stop(Next::kPlain);
    uint64_t value = words_[word];
    for (const auto& [index, stored] : current().buffer) {
      if (index == word) value = stored;
    }
    current().history = Mix(current().history, value + 1);
    return value;
  }
  void Store(size_t word, uint64_t value, bool sequential) {
    if (!sequential) {
      current().history = Mix(current().history, 0);
      current().buffer.emplace_back(word, value);
      return;
    }
    Stop(Next::kNeedsEmptyBuffer);
    words_[word] = value;
  }
  uint64_t Exchange(size_t word, uint64_t value) {
    Stop(Next::kNeedsEmptyBuffer);
    current().history = Mix(current().history, words_[word] + 1);
    return std::exchange(words_[word], value);
  }
  void Ring(int fiber) {
    Stop(Next::kPlain);
    fibers_[fiber].rung = true;
  }
  void AwaitBell() {
    Stop(Next::kNeedsBell);
    current().rung = false;
  }
  void Fail(const std::string& what) {
    if (result_.failure.empty()) result_.failure = what;
  }
  [[noreturn]] void RunBodies() {
    if (_setjmp(current().beginning) == 0) _longjmp(main_, 1);
    body_(current_);
    current().next = Next::kNothing;
    _longjmp(main_, 1);
  }

 private:
  // An action: 2 f: fiber f goes on; 2 f + 1: the oldest store in its buffer reaches memory.
  void Enabled(std::vector<int>& actions) const {
    actions.clear();
    for (size_t f = 0; f < fibers_.size(); ++f) {
      const Fiber& fiber = fibers_[f];
      const bool goes_on = fiber.next == Next::kPlain ||
                           (fiber.next == Next::kNeedsEmptyBuffer && fiber.buffer.empty()) ||
                           (fiber.next == Next::kNeedsBell && fiber.rung);
      if (goes_on) actions.push_back(static_cast<int>(2 * f));
      if (!fiber.buffer.empty()) actions.push_back(static_cast<int>(2 * f + 1));
    }
  }

  void Start();
  void Perform(int action);
  uint64_t HashOfState() const;
  void Run();
  bool AllDone() const {
    for (const Fiber& fiber : fibers_) {
      if (fiber.next != Next::kNothing) return false;
    }
    return true;
  }
  bool Backtrack() {
    while (!path_.empty() && path_.back().taken + 1 == path_.back().of) path_.pop_back();
    if (path_.empty()) return false;
    ++path_.back().taken;
    return true;
  }

  const std::function<void()>& reset_;
  const std::function<void(int)>& body_;
  std::vector<Fiber> fibers_;
  std::vector<uint64_t> words_;
  jmp_buf main_;
  int current_ = 0;
  bool running_ = false;
  std::vector<Choice> path_;
  absl::flat_hash_set<uint64_t> seen_;
  Interleavings::Result result_;
};

Explorer* explorer = nullptr;

void Enter() { explorer->RunBodies(); }

// Each fiber is entered once; jumps between them, also back to their beginnings, cost no system
// call.
void Explorer::MakeFibers() {
  for (current_ = 0; current_ < static_cast<int>(fibers_.size()); ++current_) {
    if (_setjmp(main_) != 0) continue;
    ucontext_t context;
    ::getcontext(&context);
    context.uc_stack.ss_sp = current().stack.get();
    context.uc_stack.ss_size = kStack;
    context.uc_link = nullptr;
    ::makecontext(&context, Enter, 0);
    ::setcontext(&context);
  }
}

void Explorer::Start() {
  words_.clear();
  running_ = false;
  reset_();
  running_ = true;
  for (Fiber& fiber : fibers_) {
    fiber.next = Next::kPlain;
    fiber.rung = false;
    fiber.history = 0;
    fiber.buffer.clear();
    fiber.begun = false;
  }
}

void Explorer::Perform(int action) {
  Fiber& fiber = fibers_[action / 2];
  if (action % 2 == 1) {
    words_[fiber.buffer.front().first] = fiber.buffer.front().second;
    fiber.buffer.erase(fiber.buffer.begin());
    return;
  }
  current_ = action / 2;
  if (_setjmp(main_) != 0) return;
  _longjmp(std::exchange(fiber.begun, true) ? fiber.context : fiber.beginning, 1);
}

uint64_t Explorer::HashOfState() const {
  uint64_t hash = 0;
  for (const uint64_t word : words_) hash = Mix(hash, word);
  for (const Fiber& fiber : fibers_) {
    hash = Mix(hash, fiber.history);
    hash = Mix(hash, static_cast<uint64_t>(fiber.next) * 2 + fiber.rung);
    for (const auto& [word, value] : fiber.buffer) hash = Mix(Mix(hash, word), value);
    hash = Mix(hash, fiber.buffer.size());
  }
  return hash;
}

// Along the path as far as it goes, then along the first choice each time.
void Explorer::Run() {
  Start();
  std::vector<int> actions;
  for (size_t depth = 0;; ++depth) {
    if (depth + 1 < path_.size()) {
      Perform(path_[depth].action);
      continue;
    }
    Enabled(actions);
    if (actions.empty()) {
      if (!AllDone()) Fail("nobody can go on");
      return;
    }
    if (depth == path_.size()) {
      if (!seen_.insert(HashOfState()).second) return;
      path_.push_back({0, static_cast<int>(actions.size())});
    }
    path_[depth].action = actions[path_[depth].taken];
    Perform(path_[depth].action);
    if (!result_.failure.empty()) return;
  }
}

}  // namespace

Interleavings::Result Interleavings::Explore(int fibers, const std::function<void()>& reset,
                                             const std::function<void(int)>& body) {
  Explorer one(fibers, reset, body);
  explorer = &one;
  one.MakeFibers();
  const Result result = one.Explore();
  explorer = nullptr;
  return result;
}

void Interleavings::Fail(const std::string& what) { explorer->Fail(what); }
void Interleavings::Forget(uint64_t state) { explorer->current().history = Mix(0, state); }
void Interleavings::Ring(int fiber) { explorer->Ring(fiber); }
void Interleavings::AwaitBell() { explorer->AwaitBell(); }

ModelWord::ModelWord() : index_(explorer->NewWord()) {}
uint64_t ModelWord::Load() const { return explorer->Load(index_); }
void ModelWord::Store(uint64_t value, bool sequential) {
  explorer->Store(index_, value, sequential);
}
uint64_t ModelWord::Exchange(uint64_t value) { return explorer->Exchange(index_, value); }

namespace {

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)

struct TwoWords {
  ModelAtomic<int> x, y;
  int seen[2] = {-1, -1};
};

// Store own word, load the other's: may both see the old value?
Interleavings::Result StoreThenLoad(std::memory_order order, std::set<std::pair<int, int>>& seen) {
  std::unique_ptr<TwoWords> words;
  int done = 0;
  return Interleavings::Explore(
      2,
      [&] {
        words = std::make_unique<TwoWords>();
        done = 0;
      },
      [&](int fiber) {
        (fiber == 0 ? words->x : words->y).store(1, order);
        words->seen[fiber] = (fiber == 0 ? words->y : words->x).load(order);
        if (++done == 2) seen.emplace(words->seen[0], words->seen[1]);
      });
}

TEST(InterleavingsTest, FindsEveryOutcomeOfSequentiallyConsistentStores) {
  std::set<std::pair<int, int>> seen;
  EXPECT_EQ(StoreThenLoad(std::memory_order_seq_cst, seen).failure, "");
  EXPECT_EQ(seen, (std::set<std::pair<int, int>>{{0, 1}, {1, 0}, {1, 1}}));
}

TEST(InterleavingsTest, FindsThatStoreBuffersLetBothSeeTheOldValue) {
  std::set<std::pair<int, int>> seen;
  EXPECT_EQ(StoreThenLoad(std::memory_order_release, seen).failure, "");
  EXPECT_EQ(seen.count({0, 0}), 1u);
}

TEST(InterleavingsTest, FindsALostUpdate) {
  std::unique_ptr<ModelAtomic<int>> counter;
  std::set<int> seen;
  int done = 0;
  Interleavings::Explore(
      3,
      [&] {
        counter = std::make_unique<ModelAtomic<int>>();
        done = 0;
      },
      [&](int) {
        counter->store(counter->load() + 1);
        if (++done == 3) seen.insert(counter->load());
      });
  EXPECT_EQ(seen, (std::set<int>{1, 2, 3}));
}

TEST(InterleavingsTest, FindsADeadlock) {
  const auto result = Interleavings::Explore(
      2, [] {}, [](int) { Interleavings::AwaitBell(); });
  EXPECT_EQ(result.failure, "nobody can go on");
}

#endif

}  // namespace

}  // namespace tutti::comm
