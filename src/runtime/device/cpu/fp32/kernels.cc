#include "runtime/device/cpu/fp32/kernels.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
namespace tutti::device::cpu::fp32 {
namespace {

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4,prefer-vector-width=512")
namespace widest {
constexpr int kVectorBytes = 64;
#include "runtime/device/cpu/fp32/kernels.inc"
}  // namespace widest
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
namespace wide {
constexpr int kVectorBytes = 32;
#include "runtime/device/cpu/fp32/kernels.inc"
}  // namespace wide
#pragma GCC pop_options

const Kernels* KernelsFor(base::InstructionSet set) {
  switch (set) {
    case base::InstructionSet::kAvx512:
      return &widest::kKernels;
    case base::InstructionSet::kAvx2:
      return &wide::kKernels;
    case base::InstructionSet::kPlain:
      break;
  }
  return nullptr;
}

std::atomic<const Kernels*>& Chosen() {
  static std::atomic<const Kernels*> chosen = KernelsFor(base::UsableInstructionSet());
  return chosen;
}

}  // namespace

const Kernels* Best() { return Chosen().load(std::memory_order_relaxed); }

void HoldTo(base::InstructionSet most) {
  Chosen() = KernelsFor(std::min(most, base::UsableInstructionSet()));
}

}  // namespace tutti::device::cpu::fp32
#else

namespace tutti::device::cpu::fp32 {
const Kernels* Best() { return nullptr; }
void HoldTo(base::InstructionSet) {}
}  // namespace tutti::device::cpu::fp32
#endif
