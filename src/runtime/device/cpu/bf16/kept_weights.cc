#include "runtime/device/cpu/bf16/kept_weights.h"

#include <utility>

namespace tutti::device::cpu {
namespace {

thread_local KeptWeights* current = nullptr;

}  // namespace

KeptWeights::Use::Use(KeptWeights& kept) : before_(std::exchange(current, &kept)) {}
KeptWeights::Use::~Use() { current = before_; }

KeptWeights* KeptWeights::Current() { return current; }

const void* KeptWeights::Find(const void* weights, int form, int64_t bytes,
                              const std::function<void(void*)>& make) {
  // Another thread that asks meanwhile waits: it would compute the same.
  const std::lock_guard lock(mutex_);
  const auto [it, is_new] = packed_.try_emplace({weights, form, bytes});
  char* const to = it->second.Of(bytes);
  if (is_new) make(to);
  return to;
}

}  // namespace tutti::device::cpu
