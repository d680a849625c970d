#include "runtime/comm/model/sequential_order_test_support.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "runtime/comm/model/mix_test_support.h"

namespace tutti::comm {
namespace {

constexpr int8_t kNever = std::numeric_limits<int8_t>::max();

bool CoherenceOrderedBefore(const WordAccess& a, const WordAccess& b) {
  return a.word == b.word &&
         (a.position < b.position || (a.position == b.position && a.is_store && !b.is_store));
}

int KeyOf(const WordAccess& access) { return 2 * access.position + (access.is_store ? 0 : 1); }

// Whether the access with this key, of the same word, is coherence-ordered before.
bool KeyIsBefore(int key, const WordAccess& access) {
  return access.is_store ? key < 2 * access.position : key <= 2 * access.position;
}

bool Has(uint64_t bits, size_t at) { return (bits >> at & 1) != 0; }

}  // namespace

void RequireOfModel(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "the model: %s\n", what);
  std::abort();
}

bool SequentialOrder::Order(size_t first, size_t second) {
  if (first == second || Has(operations_[first].before, second)) return false;
  if (Has(operations_[second].before, first)) return true;
  const uint64_t more = operations_[first].before | uint64_t{1} << first;
  for (size_t i = 0; i < operations_.size(); ++i) {
    if (i == second || Has(operations_[i].before, second)) operations_[i].before |= more;
  }
  return true;
}

// What happens after a fence and is coherence-ordered before an operation, or before what has
// happened before another fence, puts the fence before those.
bool SequentialOrder::Access(uint64_t known, const WordAccess& access) {
  for (size_t f = 0; f < operations_.size(); ++f) {
    if (!operations_[f].is_fence || !Has(known, f)) continue;
    int8_t& first = operations_[f].first_after[access.word];
    first = static_cast<int8_t>(std::min<int>(first, KeyOf(access)));
    for (size_t i = 0; i < operations_.size(); ++i) {
      const Operation& other = operations_[i];
      const bool before = other.is_fence ? i != f && access.position < other.seen[access.word]
                                         : CoherenceOrderedBefore(access, other.access);
      if (before && !Order(f, i)) return false;
    }
  }
  return true;
}

bool SequentialOrder::AddAccess(size_t at, int thread, uint64_t known, const WordAccess& access) {
  Insert(at, thread, known);
  operations_[at].access = access;
  for (size_t i = 0; i < operations_.size(); ++i) {
    const Operation& other = operations_[i];
    if (i == at) continue;
    if (other.is_fence) {
      if (access.position < other.seen[access.word] && !Order(at, i)) return false;
      if (KeyIsBefore(other.first_after[access.word], access) && !Order(i, at)) return false;
      continue;
    }
    if (CoherenceOrderedBefore(other.access, access) && !Order(i, at)) return false;
    if (CoherenceOrderedBefore(access, other.access) && !Order(at, i)) return false;
  }
  return true;
}

void SequentialOrder::AddFence(size_t at, int thread, uint64_t known, const Positions& seen) {
  Insert(at, thread, known);
  operations_[at].is_fence = true;
  operations_[at].seen = seen;
  operations_[at].first_after.fill(kNever);
  for (size_t i = 0; i < operations_.size(); ++i) {
    const Operation& other = operations_[i];
    if (i == at) continue;
    bool before = false;
    for (size_t word = 0; word < kMostModelWords; ++word) {
      if (other.is_fence) {
        before = before || other.first_after[word] <= 2 * seen[word];
      } else if (other.access.word == word) {
        before = KeyOf(other.access) <= 2 * seen[word];
      }
    }
    if (before) Order(i, at);  // nothing comes after a new fence yet
  }
}

size_t SequentialOrder::At(int thread) const {
  const auto after = std::upper_bound(operations_.begin(), operations_.end(), thread,
                                      [](int t, const Operation& o) { return t < o.thread; });
  return static_cast<size_t>(after - operations_.begin());
}

void SequentialOrder::Insert(size_t at, int thread, uint64_t known) {
  RequireOfModel(operations_.size() < kMost, "too many sequentially consistent operations");
  for (Operation& other : operations_) other.before = InsertBit(other.before, at);
  known = InsertBit(known, at);
  operations_.insert(operations_.begin() + static_cast<std::ptrdiff_t>(at), Operation());
  operations_[at].thread = thread;
  for (size_t i = 0; i < operations_.size(); ++i) {
    if (Has(known, i)) Order(i, at);
  }
}

void SequentialOrder::Shift(size_t word, int position) {
  for (Operation& one : operations_) {
    if (one.is_fence) {
      if (one.seen[word] >= position) ++one.seen[word];
      const int8_t first = one.first_after[word];
      if (first != kNever && first >= 2 * position) one.first_after[word] += 2;
    } else if (one.access.word == word && one.access.position >= position) {
      ++one.access.position;
    }
  }
}

// What is forgotten comes before all that can still come.
void SequentialOrder::Forget(size_t word, int count) {
  for (Operation& one : operations_) {
    if (one.is_fence) {
      one.seen[word] = static_cast<int8_t>(std::max(one.seen[word] - count, 0));
      int8_t& first = one.first_after[word];
      if (first != kNever) first = static_cast<int8_t>(std::max(first - 2 * count, -1));
    } else if (one.access.word == word) {
      one.access.position = std::max(one.access.position - count, -1);
    }
  }
}

// No access comes before what every thread has seen.
size_t SequentialOrder::Droppable() const {
  uint64_t open = 0;
  for (size_t i = 0; i < operations_.size(); ++i) {
    const Operation& one = operations_[i];
    const bool is_open =
        one.is_fence ? std::any_of(one.seen.begin(), one.seen.end(), [](int8_t p) { return p > 0; })
                     : one.access.position > 0;
    if (is_open) open |= uint64_t{1} << i;
  }
  for (size_t i = 0; i < operations_.size(); ++i) {
    if (((operations_[i].before | uint64_t{1} << i) & open) == 0) return i;
  }
  return operations_.size();
}

void SequentialOrder::Drop(size_t at) {
  operations_.erase(operations_.begin() + static_cast<std::ptrdiff_t>(at));
  for (Operation& other : operations_) other.before = RemoveBit(other.before, at);
}

uint64_t SequentialOrder::Hash() const {
  uint64_t hash = operations_.size();
  for (const Operation& one : operations_) {
    hash = Mix(hash, one.before);
    if (one.is_fence) {
      hash = MixBytes(MixBytes(hash, one.seen), one.first_after);
    } else {
      hash = Mix(hash, one.access.word * 1024 + static_cast<uint64_t>(KeyOf(one.access) + 8));
    }
    hash = Mix(hash, static_cast<uint64_t>(one.thread) * 2 + one.is_fence);
  }
  return hash;
}

}  // namespace tutti::comm
