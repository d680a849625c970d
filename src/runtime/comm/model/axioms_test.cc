// The model's memory against the axioms of C++20: small programs at random, of which every
// execution is written down, whatever stores its loads read and in whatever order each word's
// stores come, and is judged by the relations of [intro.races] and [atomics.order]. What the
// explorer finds has to be exactly what they allow, load buffering left out (no circle of
// sequenced-before and reads-from).
// Covers: memory_test_support.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "runtime/comm/model/interleavings.h"
#include "runtime/comm/model/memory_test_support.h"

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)

namespace tutti::comm {
namespace {

using EventKind = OrderPlace::Kind;
constexpr int kWords = 2;

// Events 0 and 1 are the words' initial stores. A store's value is its number.
struct Event {
  int thread;
  EventKind kind;
  int word;
  std::memory_order order;

  bool reads() const { return kind == EventKind::kLoad || kind == EventKind::kUpdate; }
  bool stores() const { return kind == EventKind::kStore || kind == EventKind::kUpdate; }
  bool fence() const { return kind == EventKind::kFence; }
  bool sequential() const { return thread >= 0 && order == std::memory_order_seq_cst; }
};
using Program = std::vector<Event>;
// What each event has read, and what each word holds at last.
using Ending = std::vector<int>;

// ---- Relations ----

class Relation {
 public:
  void Add(int a, int b) { to_[a] |= 1u << b; }
  bool Has(int a, int b) const { return (to_[a] >> b & 1) != 0; }
  Relation operator|(const Relation& other) const {
    Relation both = *this;
    for (size_t a = 0; a < kMost; ++a) both.to_[a] |= other.to_[a];
    return both;
  }
  // Returns the composition of this relation and then `other`.
  Relation Then(const Relation& other) const {
    Relation result;
    for (size_t a = 0; a < kMost; ++a) {
      for (size_t b = 0; b < kMost; ++b) {
        if ((to_[a] >> b & 1) != 0) result.to_[a] |= other.to_[b];
      }
    }
    return result;
  }
  Relation Closed() const {
    Relation result = *this;
    for (size_t b = 0; b < kMost; ++b) {
      for (size_t a = 0; a < kMost; ++a) {
        if ((result.to_[a] >> b & 1) != 0) result.to_[a] |= result.to_[b];
      }
    }
    return result;
  }
  bool Irreflexive() const {
    for (size_t a = 0; a < kMost; ++a) {
      if ((to_[a] >> a & 1) != 0) return false;
    }
    return true;
  }

 private:
  static constexpr size_t kMost = 12;
  std::array<uint32_t, kMost> to_ = {};
};

class Execution {
 public:
  // `read[e]`: whose store event e reads; `place[e]`: of a store, in its word's order.
  Execution(const Program& program, const std::vector<int>& read, const std::vector<int>& place)
      : program_(program), read_(read), place_(place), size_(static_cast<int>(program.size())) {}

  bool Allowed() {
    Relate();
    return AtomicUpdates() && (sequenced_ | reads_from_).Closed().Irreflexive() &&
           happens_before_.Irreflexive() && happens_before_.Then(coherence_).Irreflexive() &&
           HasTotalOrder();
  }

 private:
  template <typename Function>
  void ForPairs(const Function& function) const {
    for (int a = 0; a < size_; ++a) {
      for (int b = 0; b < size_; ++b) {
        if (a != b) function(a, b);
      }
    }
  }

  void Relate() {
    Relation modification, before_next;
    ForPairs([&](int a, int b) {
      const Event &x = program_[a], &y = program_[b];
      if (x.thread < 0 ? y.thread >= 0 : x.thread == y.thread && a < b) sequenced_.Add(a, b);
      if (x.fence() || y.fence() || x.word != y.word) return;
      if (y.reads() && read_[b] == a) reads_from_.Add(a, b);
      if (x.stores() && y.stores() && place_[a] < place_[b]) modification.Add(a, b);
      if (x.reads() && y.stores() && place_[read_[a]] < place_[b]) before_next.Add(a, b);
    });
    coherence_ = (reads_from_ | modification | before_next).Closed();
    ForPairs([&](int a, int b) {
      if (program_[b].reads()) Synchronize(a, b);
    });
    happens_before_ = (sequenced_ | synchronized_).Closed();
  }

  // If b reads from the release sequence that store a heads.
  void Synchronize(int a, int b) {
    int read = read_[b];
    while (read != a && program_[read].kind == EventKind::kUpdate) read = read_[read];
    if (read != a) return;
    ForPairs([&](int x, int y) {
      const bool releases = program_[x].fence() ? sequenced_.Has(x, a) : x == a;
      const bool acquires = program_[y].fence() ? sequenced_.Has(b, y) : y == b;
      if (releases && acquires && program_[x].thread >= 0 && Releases(program_[x].order) &&
          Acquires(program_[y].order)) {
        synchronized_.Add(x, y);
      }
    });
  }

  bool AtomicUpdates() const {
    for (int e = 0; e < size_; ++e) {
      if (program_[e].kind == EventKind::kUpdate && place_[read_[e]] + 1 != place_[e]) return false;
    }
    return true;
  }

  // The operations of S that an event puts before (after) what is coherence-ordered after (before)
  // it.
  std::vector<int> Standing(int event, bool before) const {
    std::vector<int> standing;
    if (program_[event].sequential()) standing.push_back(event);
    for (int fence = 0; fence < size_; ++fence) {
      const bool ordered =
          before ? happens_before_.Has(fence, event) : happens_before_.Has(event, fence);
      if (program_[fence].fence() && program_[fence].sequential() && ordered) {
        standing.push_back(fence);
      }
    }
    return standing;
  }

  bool HasTotalOrder() const {
    Relation strongly = sequenced_ | sequenced_.Then(happens_before_).Then(sequenced_);
    ForPairs([&](int a, int b) {
      if (synchronized_.Has(a, b) && program_[a].sequential() && program_[b].sequential()) {
        strongly.Add(a, b);
      }
    });
    strongly = strongly.Closed();
    Relation order;
    ForPairs([&](int a, int b) {
      if (program_[a].sequential() && program_[b].sequential() && strongly.Has(a, b)) {
        order.Add(a, b);
      }
      if (!coherence_.Has(a, b)) return;
      for (const int x : Standing(a, true)) {
        for (const int y : Standing(b, false)) order.Add(x, y);
      }
    });
    return order.Closed().Irreflexive();
  }

  const Program& program_;
  const std::vector<int>&read_, &place_;
  const int size_;
  Relation sequenced_, reads_from_, coherence_, synchronized_, happens_before_;
};

// ---- Both sides ----

class Enumeration {
 public:
  explicit Enumeration(const Program& program)
      : program_(program), read_(program.size(), -1), place_(program.size(), 0) {
    for (int word = 0; word < kWords; ++word) stores_[word] = {word};
    for (size_t e = kWords; e < program.size(); ++e) {
      if (program[e].stores()) stores_[program[e].word].push_back(static_cast<int>(e));
    }
  }
  std::set<Ending> All() {
    OrderStores(0);
    return std::move(endings_);
  }

 private:
  void OrderStores(int word) {
    if (word == kWords) return ChooseReads(kWords);
    std::vector<int> order = stores_[word];
    do {
      for (size_t p = 0; p < order.size(); ++p) place_[order[p]] = static_cast<int>(p);
      last_[word] = order.back();
      OrderStores(word + 1);
    } while (std::next_permutation(order.begin() + 1, order.end()));
  }
  void ChooseReads(size_t event) {
    if (event == program_.size()) return Judge();
    if (!program_[event].reads()) return ChooseReads(event + 1);
    for (const int store : stores_[program_[event].word]) {
      read_[event] = store;
      if (store != static_cast<int>(event)) ChooseReads(event + 1);
    }
  }
  void Judge() {
    if (!ReadsEnd() || !Execution(program_, read_, place_).Allowed()) return;
    Ending ending = read_;
    ending.insert(ending.end(), last_, last_ + kWords);
    endings_.insert(ending);
  }
  // Updates that read each other in a circle have no release sequence to follow.
  bool ReadsEnd() const {
    for (size_t e = 0; e < read_.size(); ++e) {
      size_t steps = 0;
      for (int at = read_[e]; at >= 0 && program_[at].kind == EventKind::kUpdate; at = read_[at]) {
        if (++steps > read_.size()) return false;
      }
    }
    return true;
  }

  const Program& program_;
  std::vector<int> stores_[kWords];
  std::vector<int> read_, place_;
  int last_[kWords] = {};
  std::set<Ending> endings_;
};

struct Words {
  ModelAtomic<int> word[kWords];
  std::array<int, 12> read;
};

void RunThread(const Program& program, Words& words, int thread) {
  for (size_t e = kWords; e < program.size(); ++e) {
    const Event& event = program[e];
    if (event.thread != thread) continue;
    auto& word = words.word[event.word];
    // Each event as if it stood in a line of its own.
    const int number = static_cast<int>(e);
    if (event.kind == EventKind::kLoad) words.read[e] = word.load(event.order);
    if (event.kind == EventKind::kStore) word.store(number, event.order);
    if (event.kind == EventKind::kUpdate) words.read[e] = word.exchange(number, event.order);
    if (event.kind == EventKind::kFence) Interleavings::Fence(event.order);
  }
}

std::set<Ending> ExploreProgram(const Program& program) {
  std::set<Ending> endings;
  std::unique_ptr<Words> words;
  const auto reset = [&] {
    words = std::make_unique<Words>();
    words->read.fill(-1);
    Interleavings::Keep(words->read.data(), sizeof(words->read));
    for (int word = 0; word < kWords; ++word) words->word[word].store(word);
  };
  const auto end = [&] {
    Ending ending(words->read.begin(), words->read.begin() + program.size());
    for (auto& word : words->word) ending.push_back(word.load());
    endings.insert(ending);
  };
  const int threads = program.back().thread + 1;
  const auto body = [&](int thread) { RunThread(program, *words, thread); };
  EXPECT_EQ(Interleavings::Explore(threads, reset, body, {.end = end}).failure, "");
  return endings;
}

// Makes a program of threads with three operations each or, if `loose`, of four to eight operations
// in all. Most threads of a program that is not loose have a fence in the middle, or sequentially
// consistent operations at the ends.
Program RandomProgram(std::mt19937& random, bool loose) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  using std::memory_order;
  constexpr memory_order kLoads[] = {memory_order::relaxed, memory_order::acquire,
                                     memory_order::seq_cst};
  constexpr memory_order kStores[] = {memory_order::relaxed, memory_order::release,
                                      memory_order::seq_cst};
  constexpr memory_order kBoth[] = {memory_order::relaxed, memory_order::acquire,
                                    memory_order::release, memory_order::acq_rel,
                                    memory_order::seq_cst};
  Program program;
  for (int word = 0; word < kWords; ++word) {
    program.push_back({-1, EventKind::kStore, word, memory_order::relaxed});
  }
  const int threads = 2 + below(2), size = loose ? 4 + below(5) : 3 * threads;
  for (int i = 0; i < size; ++i) {
    const int thread = i * threads / size, word = below(kWords);
    const int kind = loose ? below(9) : i % 3 == 1 && below(3) > 0 ? 8 : below(8);
    const int which = loose ? below(3) : below(2) * 2;
    if (kind < 4) {
      program.push_back({thread, EventKind::kLoad, word, kLoads[which]});
    } else if (kind < 7) {
      program.push_back({thread, EventKind::kStore, word, kStores[which]});
    } else if (kind == 7) {
      program.push_back({thread, EventKind::kUpdate, word, kBoth[below(5)]});
    } else {
      program.push_back({thread, EventKind::kFence, word, kBoth[loose ? 1 + below(4) : 4]});
    }
  }
  return program;
}

std::string Text(const Program& program) {
  std::string text;
  for (const Event& event : program) {
    const char* const kinds[] = {"load", "store", "update", "fence"};
    absl::StrAppend(&text, "thread ", event.thread, ": ", kinds[static_cast<int>(event.kind)],
                    " word ", event.word, " order ", static_cast<int>(event.order), "; ");
  }
  return text;
}

TEST(AxiomsTest, TheExplorerFindsExactlyWhatTheyAllow) {
  constexpr int programs = 1500;
  std::mt19937 random(1);
  size_t endings = 0;
  for (int i = 0; i < programs; ++i) {
    const Program program = RandomProgram(random, i % 3 == 0);
    const auto allowed = Enumeration(program).All();
    ASSERT_EQ(ExploreProgram(program), allowed) << Text(program);
    endings += allowed.size();
  }
  std::printf("%d programs, %zu endings\n", programs, endings);
}

}  // namespace
}  // namespace tutti::comm

#endif
