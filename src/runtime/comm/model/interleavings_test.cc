// The explorer, and its own tests: programs of which it is known what can come out.
#include "runtime/comm/model/interleavings.h"

#include <gtest/gtest.h>
#include <setjmp.h>
#include <ucontext.h>

#include <cstring>
#include <memory>
#include <set>
#include <utility>

#include "absl/container/flat_hash_set.h"

namespace tutti::comm {
namespace {

constexpr size_t kStack = 64 << 10;
constexpr size_t kFrame = 512;  // more than what Stop, and setjmp in it, have on the stack

uint64_t Mix(uint64_t hash, uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15 + (hash << 6) + (hash >> 2);
  hash *= 0xff51afd7ed558ccd;
  return hash ^ hash >> 32;
}

// What a fiber that has stopped will do when it goes on.
enum class Next { kPlain, kNeedsEmptyBuffer, kNeedsBell, kNothing };

// Where a fiber is.
struct Place {
  jmp_buf context;
  size_t used = 0;  // bytes of its stack
  Next next = Next::kPlain;
  bool rung = false;
  uint64_t history = 0;
  std::vector<std::pair<size_t, uint64_t>> buffer;  // stores under way: word, value
};

struct Fiber : Place {
  std::unique_ptr<char[]> stack = std::make_unique<char[]>(kStack);
  char* top() const { return stack.get() + kStack; }
};

// All that the next action depends on.
struct Moment {
  std::vector<Place> places;
  std::vector<uint64_t> words;
  std::vector<char> bytes;  // of the stacks, and what is to be kept
};

// A choice: the action taken, of all that there were at that moment, which is kept if there are
// others.
struct Choice {
  size_t taken = 0;
  std::vector<int> actions;
  Moment before;
};

class Explorer {
 public:
  Explorer(int fibers, const std::function<void()>& reset, const std::function<void(int)>& body)
      : reset_(reset), body_(body), fibers_(fibers) {}
  void MakeFibers();

  Interleavings::Result Explore() {
    Start();
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
  void Keep(void* data, size_t size) { kept_.push_back({static_cast<char*>(data), size}); }
  [[gnu::noinline]] void Stop(Next next) {
    if (!running_) return;
    current().next = next;
    current().used = current().top() - static_cast<char*>(__builtin_frame_address(0)) + kFrame;
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
  [[noreturn, gnu::noinline]] void RunBodies() {
    current().used = current().top() - static_cast<char*>(__builtin_frame_address(0)) + kFrame;
    if (_setjmp(current().context) == 0) _longjmp(main_, 1);
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
  void Remember(Moment& moment) const;
  void GoBackTo(const Moment& moment);
  Choice& NewChoice();
  uint64_t HashOfState() const;
  void Run();
  bool AllDone() const {
    for (const Fiber& fiber : fibers_) {
      if (fiber.next != Next::kNothing) return false;
    }
    return true;
  }
  bool Backtrack() {
    while (depth_ > 0 && path_[depth_ - 1].taken + 1 == path_[depth_ - 1].actions.size()) --depth_;
    if (depth_ == 0) return false;
    Choice& last = path_[depth_ - 1];
    GoBackTo(last.before);
    Perform(last.actions[++last.taken]);
    return true;
  }

  const std::function<void()>& reset_;
  const std::function<void(int)>& body_;
  std::vector<Fiber> fibers_;
  std::vector<uint64_t> words_;
  jmp_buf main_;
  int current_ = 0;
  bool running_ = false;
  std::vector<Choice> path_;  // those from depth_ on are of runs before
  size_t depth_ = 0;
  std::vector<std::pair<char*, size_t>> kept_;
  absl::flat_hash_set<uint64_t> seen_;
  Interleavings::Result result_;
};

Explorer* explorer = nullptr;

void Enter() { explorer->RunBodies(); }

// Each fiber is entered once; jumps between them cost no system call.
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
  reset_();
  running_ = true;
}

void Explorer::Remember(Moment& moment) const {
  moment.places.assign(fibers_.begin(), fibers_.end());
  moment.words = words_;
  moment.bytes.clear();
  const auto add = [&](const char* data, size_t size) {
    moment.bytes.insert(moment.bytes.end(), data, data + size);
  };
  for (const Fiber& fiber : fibers_) add(fiber.top() - fiber.used, fiber.used);
  for (const auto& [data, size] : kept_) add(data, size);
}

void Explorer::GoBackTo(const Moment& moment) {
  const char* from = moment.bytes.data();
  const auto take = [&](char* data, size_t size) {
    std::memcpy(data, from, size);
    from += size;
  };
  for (size_t f = 0; f < fibers_.size(); ++f) {
    Fiber& fiber = fibers_[f];
    static_cast<Place&>(fiber) = moment.places[f];
    take(fiber.top() - fiber.used, fiber.used);
  }
  for (const auto& [data, size] : kept_) take(data, size);
  words_ = moment.words;
}

Choice& Explorer::NewChoice() {
  if (depth_ == path_.size()) path_.emplace_back();
  Choice& choice = path_[depth_++];
  choice.taken = 0;
  return choice;
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
  _longjmp(fiber.context, 1);
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

// Along the first choice each time.
void Explorer::Run() {
  std::vector<int> actions;
  while (result_.failure.empty()) {
    Enabled(actions);
    if (actions.empty()) {
      if (!AllDone()) Fail("nobody can go on");
      return;
    }
    if (!seen_.insert(HashOfState()).second) return;
    Choice& choice = NewChoice();
    choice.actions = actions;
    if (actions.size() > 1) Remember(choice.before);
    Perform(actions[0]);
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

void Interleavings::Keep(void* data, size_t size) { explorer->Keep(data, size); }
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
        Interleavings::Keep(words->seen, sizeof(words->seen));
        Interleavings::Keep(&done, sizeof(done));
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
        Interleavings::Keep(&done, sizeof(done));
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
