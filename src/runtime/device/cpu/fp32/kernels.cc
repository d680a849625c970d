#include "runtime/device/cpu/fp32/kernels.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
namespace tutti::device::cpu::fp32 {
namespace {

#define TUTTI_KERNELS "runtime/device/cpu/fp32/kernels.inc"
#define TUTTI_WITHOUT_PLAIN
#include "runtime/device/cpu/vector/for_each_instruction_set.inc"
#undef TUTTI_WITHOUT_PLAIN
#undef TUTTI_KERNELS

const Kernels* KernelsFor(base::InstructionSet set) {
  return base::For<const Kernels*>(set, &widest::kKernels, &wide::kKernels, nullptr);
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
