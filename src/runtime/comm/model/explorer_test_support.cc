#include "runtime/comm/model/explorer_test_support.h"

#include <ucontext.h>

namespace tutti::comm {
namespace {

void EnterFiber() { explorer->Enter(); }

}  // namespace

// ---- Fibers ----

// Each fiber is entered once; jumps between them cost no system call.
void Explorer::MakeFibers() {
  for (current_ = 0; current_ < static_cast<int>(fibers_.size()); ++current_) {
    if (_setjmp(main_) != 0) continue;
    ucontext_t context;
    ::getcontext(&context);
    context.uc_stack.ss_sp = current().stack.get();
    context.uc_stack.ss_size = kFiberStack;
    context.uc_link = nullptr;
    ::makecontext(&context, EnterFiber, 0);
    ::setcontext(&context);
  }
}

[[gnu::noinline]] void Explorer::Enter() {
  current().used = UsedBelow(__builtin_frame_address(0));
  if (_setjmp(current().context) == 0) _longjmp(main_, 1);
  (*body_)(current_);
  current().next = {FiberStep::kNothing};
  memory_.Finish(current_);
  _longjmp(main_, 1);
}

// ---- What they do ----

// A place is looked up by where it is; what it means is found out once.
std::memory_order Explorer::OrderAt(OrderPlace::Kind kind, std::memory_order order,
                                    const std::source_location& where) {
  uint64_t key = Mix(reinterpret_cast<uintptr_t>(where.file_name()), where.line());
  key = Mix(Mix(key, where.column()), static_cast<uint64_t>(order));
  const auto [known, is_new] = orders_.try_emplace(key, order);
  if (is_new) {
    const std::string file = where.file_name();
    const OrderPlace place{kind, file.substr(file.rfind('/') + 1), where.line(), where.column(),
                           order};
    places_.insert(place);
    const auto& weakened = options_.weakened;
    if (weakened.has_value() && weakened->place == place) known->second = weakened->order;
  }
  return known->second;
}

void Explorer::Access(const void* data, bool is_write, const std::source_location& where) {
  for (const SharedBytes& one : shared_) {
    if (data < one.data || data >= one.data + one.size) continue;
    const std::string race = is_write ? memory_.WritePlain(current_, one.plain, where)
                                      : memory_.ReadPlain(current_, one.plain, where);
    if (!race.empty()) Fail(race);
    return;
  }
  Fail("an access to bytes that are not shared");
}

}  // namespace tutti::comm
