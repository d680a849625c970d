#include "runtime/comm/model/explorer_test_support.h"
#include "runtime/comm/model/interleavings.h"

namespace tutti::comm {

// Acquire fences are followed only where there are fences: other states would be kept apart by what
// nobody uses.
Interleavings::Result Interleavings::Explore(int fibers, const std::function<void()>& reset,
                                             const Body& body, const ExploreOptions& options) {
  for (const bool with_fences : {false, true}) {
    const auto one = std::make_unique<Explorer>(fibers, with_fences, options);
    explorer = one.get();
    Result result = one->Explore(reset, body);
    if (!one->lacks_fences()) return result;
  }
  return {};
}

void Interleavings::Keep(void* data, size_t size) { explorer->Keep(data, size); }
void Interleavings::Share(void* data, size_t size) { explorer->Share(data, size); }
void Interleavings::Fail(const std::string& what) { explorer->Fail(what); }
void Interleavings::Forget(uint64_t state) { explorer->Forget(state); }
void Interleavings::Read(const void* data, std::source_location where) {
  explorer->Access(data, false, where);
}
void Interleavings::Write(const void* data, std::source_location where) {
  explorer->Access(data, true, where);
}
void Interleavings::Fence(std::memory_order order, std::source_location where) {
  explorer->Fence(order, where);
}
void Interleavings::Notify(int fiber) { explorer->Notify(fiber); }
void Interleavings::AwaitNotification() { explorer->AwaitNotification(); }

ModelWord::ModelWord() : index_(explorer->NewWord()) {}
uint64_t ModelWord::Load(std::memory_order order, const Where& where) const {
  return explorer->Load(index_, order, where);
}
void ModelWord::Store(uint64_t value, std::memory_order order, const Where& where) {
  explorer->Store(index_, value, order, where);
}
uint64_t ModelWord::Update(uint64_t (*change)(uint64_t, uint64_t), uint64_t operand,
                           std::memory_order order, const Where& where) {
  return explorer->Update(index_, change, operand, order, where);
}

void ModelFutex::Wait(const ModelWord& word, uint64_t value, base::Deadline) {
  explorer->Sleep(word.index_, value);
}
void ModelFutex::Wake(const ModelWord& word) { explorer->Wake(word.index_); }

}  // namespace tutti::comm
