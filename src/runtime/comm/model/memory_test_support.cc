#include "runtime/comm/model/memory_test_support.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/comm/model/mix_test_support.h"

namespace tutti::comm {
namespace {

std::string Race(const char* what, const std::source_location& a, const std::source_location& b) {
  const auto place = [](const std::source_location& where) {
    const std::string file = where.file_name();
    return absl::StrCat(file.substr(file.rfind('/') + 1), ":", where.line());
  };
  return absl::StrCat("data race: ", what, " at ", place(a), " and at ", place(b));
}

}  // namespace

void ModelMemory::View::Join(const View& other) {
  for (size_t word = 0; word < seen.size(); ++word) {
    seen[word] = std::max(seen[word], other.seen[word]);
  }
  plain |= other.plain;
  known |= other.known;
}

ModelMemory::ModelMemory(int threads, bool with_fences)
    : with_fences_(with_fences), threads_(static_cast<size_t>(threads)) {}

size_t ModelMemory::AddWord(uint64_t value) {
  RequireOfModel(words_.size() < kMostModelWords, "too many words");
  words_.emplace_back().push_back({.value = value});
  return words_.size() - 1;
}

size_t ModelMemory::AddPlain() {
  plain_.emplace_back().reads.resize(threads_.size());
  RequireOfModel(plain_.size() * (threads_.size() + 1) <= 64, "too many shared bytes");
  return plain_.size() - 1;
}

// ---- Where it can be done ----

// Behind what the thread has seen, and not where a read-modify-write has left no gap.
std::vector<int> ModelMemory::Places(int thread, size_t word) const {
  std::vector<int> places;
  const auto& messages = words_[word];
  for (size_t p = threads_[thread].now.seen[word]; p < messages.size(); ++p) {
    if (p + 1 == messages.size() || !messages[p + 1].follows) places.push_back(static_cast<int>(p));
  }
  return places;
}

bool ModelMemory::AddToOrder(SequentialOrder& order, int thread, const WordAccess& access,
                             std::memory_order memory_order, size_t* at) const {
  const uint64_t known = threads_[thread].now.known;
  if (access.is_store) order.Shift(access.word, access.position);
  if (!order.Access(known, access)) return false;
  if (memory_order != std::memory_order_seq_cst) return true;
  *at = order.At(thread);
  return order.AddAccess(*at, thread, known, access);
}

bool ModelMemory::IsPossible(int thread, const WordAccess& access, std::memory_order order) const {
  if (order_.size() == 0) return true;
  SequentialOrder tried = order_;
  size_t at = 0;
  return AddToOrder(tried, thread, access, order, &at);
}

std::vector<int> ModelMemory::Loads(int thread, size_t word, std::memory_order order) const {
  std::vector<int> loads;
  for (size_t p = threads_[thread].now.seen[word]; p < words_[word].size(); ++p) {
    const int position = static_cast<int>(p);
    if (IsPossible(thread, {word, position, false}, order)) loads.push_back(position);
  }
  return loads;
}

std::vector<int> ModelMemory::Stores(int thread, size_t word, std::memory_order order) const {
  std::vector<int> stores;
  for (const int place : Places(thread, word)) {
    if (IsPossible(thread, {word, place + 1, true}, order)) stores.push_back(place + 1);
  }
  return stores;
}

std::vector<int> ModelMemory::Updates(int thread, size_t word, std::memory_order order) const {
  std::vector<int> updates;
  for (const int stored : Stores(thread, word, order)) updates.push_back(stored - 1);
  return updates;
}

// ---- Doing it ----

template <typename Function>
void ModelMemory::ForEachView(const Function& function) {
  for (Thread& thread : threads_) {
    function(thread.now);
    function(thread.later);
    function(thread.fenced);
  }
  for (auto& messages : words_) {
    for (Message& message : messages) function(message.released);
  }
}

// Into S, with what this adds to the views.
void ModelMemory::Commit(int thread, const WordAccess& access, std::memory_order order) {
  size_t at = 0;
  RequireOfModel(AddToOrder(order_, thread, access, order, &at), "an impossible access");
  if (order != std::memory_order_seq_cst) return;
  ForEachView([at](View& view) { view.known = InsertBit(view.known, at); });
  threads_[thread].now.known |= uint64_t{1} << at;
}

void ModelMemory::TakeIn(Thread& thread, const View& released, std::memory_order order) const {
  if (Acquires(order)) {
    thread.now.Join(released);
  } else if (with_fences_) {
    thread.later.Join(released);
  }
}

ModelMemory::View ModelMemory::Released(const Thread& thread, std::memory_order order) const {
  return Releases(order) ? thread.now : thread.fenced;
}

uint64_t ModelMemory::Load(int thread, size_t word, int position, std::memory_order order) {
  Commit(thread, {word, position, false}, order);
  Thread& self = threads_[thread];
  self.now.seen[word] = static_cast<int8_t>(position);
  TakeIn(self, words_[word][position].released, order);
  return words_[word][position].value;
}

void ModelMemory::Insert(size_t word, int position, Message message) {
  ForEachView([&](View& view) {
    if (view.seen[word] >= position) ++view.seen[word];
  });
  if (woken_[word] >= position) ++woken_[word];
  words_[word].insert(words_[word].begin() + position, std::move(message));
}

// What is released does not hold the store's own place in S: that it comes before what its reader
// does in S follows from the word's order.
void ModelMemory::Store(int thread, size_t word, int position, uint64_t value,
                        std::memory_order order) {
  Insert(word, position, {.value = value, .released = Released(threads_[thread], order)});
  Commit(thread, {word, position, true}, order);
  threads_[thread].now.seen[word] = static_cast<int8_t>(position);
}

uint64_t ModelMemory::Update(int thread, size_t word, int position, Change change, uint64_t operand,
                             std::memory_order order) {
  const Message read = words_[word][position];
  Thread& self = threads_[thread];
  // Before it takes in what it has read: these are not yet known to the operation itself.
  const uint64_t known = self.now.known;
  TakeIn(self, read.released, order);
  Message stored{.value = change(read.value, operand), .released = Released(self, order)};
  stored.released.Join(read.released);
  stored.follows = true;
  const uint64_t taken = self.now.known & ~known;
  self.now.known = known;
  Insert(word, position + 1, std::move(stored));
  const size_t at = order_.At(thread);
  Commit(thread, {word, position + 1, true}, order);
  self.now.known |= order == std::memory_order_seq_cst ? InsertBit(taken, at) : taken;
  self.now.seen[word] = static_cast<int8_t>(position + 1);
  return read.value;
}

void ModelMemory::Fence(int thread, std::memory_order order) {
  Thread& self = threads_[thread];
  if (Acquires(order)) self.now.Join(self.later);
  if (order == std::memory_order_seq_cst) {
    const size_t at = order_.At(thread);
    order_.AddFence(at, thread, self.now.known, self.now.seen);
    ForEachView([at](View& view) { view.known = InsertBit(view.known, at); });
    self.now.known |= uint64_t{1} << at;
  }
  if (Releases(order)) self.fenced = self.now;
}

void ModelMemory::Wake(int thread, size_t word) {
  woken_[word] = std::max(woken_[word], threads_[thread].now.seen[word]);
}

bool ModelMemory::MaySee(int thread, size_t word, uint64_t value, bool same) const {
  const auto& messages = words_[word];
  const auto first = messages.begin() + std::max(threads_[thread].now.seen[word], woken_[word]);
  return std::any_of(first, messages.end(),
                     [&](const Message& m) { return (m.value == value) == same; });
}

// ---- Plain bytes ----

uint64_t ModelMemory::PlainBit(size_t plain, int reader) const {
  return uint64_t{1} << (plain * (threads_.size() + 1) + static_cast<size_t>(reader + 1));
}

// From now on nobody but the thread has seen the last of these accesses.
void ModelMemory::NotePlain(int thread, uint64_t bits, uint64_t own) {
  ForEachView([&](View& view) { view.plain &= ~bits; });
  threads_[thread].now.plain |= own;
}

std::string ModelMemory::ReadPlain(int thread, size_t plain, const std::source_location& where) {
  if ((threads_[thread].now.plain & PlainBit(plain, -1)) == 0) {
    return Race("a write", plain_[plain].write, where);
  }
  plain_[plain].reads[thread] = where;
  NotePlain(thread, PlainBit(plain, thread), PlainBit(plain, thread));
  return "";
}

std::string ModelMemory::WritePlain(int thread, size_t plain, const std::source_location& where) {
  const uint64_t known = threads_[thread].now.plain;
  if ((known & PlainBit(plain, -1)) == 0) return Race("writes", plain_[plain].write, where);
  uint64_t bits = PlainBit(plain, -1);
  for (int reader = 0; reader < static_cast<int>(threads_.size()); ++reader) {
    if ((known & PlainBit(plain, reader)) == 0) {
      return Race("a read", plain_[plain].reads[reader], where);
    }
    bits |= PlainBit(plain, reader);
  }
  plain_[plain].write = where;
  NotePlain(thread, bits, bits);
  return "";
}

// ---- States ----

void ModelMemory::Finish(int thread) {
  threads_[thread] = Thread();
  threads_[thread].done = true;
}

// What all threads have in their views.
ModelMemory::View ModelMemory::Floor() const {
  View floor;
  floor.seen.fill(std::numeric_limits<int8_t>::max());
  floor.known = ~uint64_t{0};
  for (const Thread& thread : threads_) {
    if (thread.done) continue;
    for (size_t word = 0; word < kMostModelWords; ++word) {
      floor.seen[word] = std::min(floor.seen[word], thread.now.seen[word]);
    }
    floor.plain &= thread.now.plain;
    floor.known &= thread.now.known;
  }
  return floor;
}

void ModelMemory::ForgetBelow(size_t word, int floor) {
  words_[word].erase(words_[word].begin(), words_[word].begin() + floor);
  words_[word].front().follows = false;
  const auto lower = [&](int8_t& position) {
    position = static_cast<int8_t>(std::max(position - floor, 0));
  };
  ForEachView([&](View& view) { lower(view.seen[word]); });
  lower(woken_[word]);
  order_.Forget(word, floor);
}

void ModelMemory::Tidy() {
  if (std::all_of(threads_.begin(), threads_.end(), [](const Thread& t) { return t.done; })) return;
  const View floor = Floor();
  for (size_t word = 0; word < words_.size(); ++word) {
    if (floor.seen[word] > 0) ForgetBelow(word, floor.seen[word]);
  }
  ForEachView([&](View& view) {
    view.plain |= floor.plain;
    view.known |= floor.known;
  });
  for (size_t gone = order_.Droppable(); gone < order_.size(); gone = order_.Droppable()) {
    order_.Drop(gone);
    ForEachView([gone](View& view) { view.known = RemoveBit(view.known, gone); });
  }
  const uint64_t there = BitsBelow(order_.size());
  ForEachView([there](View& view) { view.known &= there; });
}

uint64_t ModelMemory::Hash() const {
  uint64_t hash = MixBytes(order_.Hash(), woken_);
  const auto add = [&](const View& view) {
    hash = Mix(Mix(MixBytes(hash, view.seen), view.plain), view.known);
  };
  for (const auto& messages : words_) {
    hash = Mix(hash, messages.size());
    for (const Message& message : messages) {
      hash = Mix(hash, message.value * 2 + message.follows);
      add(message.released);
    }
  }
  for (const Thread& thread : threads_) {
    if (thread.done) continue;
    add(thread.now);
    add(thread.fenced);
    if (with_fences_) add(thread.later);
  }
  return hash;
}

}  // namespace tutti::comm
