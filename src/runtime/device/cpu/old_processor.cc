#include "runtime/device/cpu/old_processor.h"

#if defined(__x86_64__)
#include <ATen/Context.h>
#include <cpuid.h>

#include <array>
#include <cstring>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace tutti::device::cpu {
namespace {

// The brand string: 48 characters in the registers of three leaves.
std::string NameOfProcessor() {
  std::array<unsigned, 12> text{};
  for (unsigned leaf = 0; leaf < 3; ++leaf) {
    unsigned* const at = &text[4 * size_t{leaf}];
    if (__get_cpuid(0x80000002 + leaf, at, at + 1, at + 2, at + 3) == 0) return "";
  }
  const auto* const first = reinterpret_cast<const char*>(text.data());
  std::string name(first, ::strnlen(first, sizeof(text)));
  absl::RemoveExtraAsciiWhitespace(&name);
  return name;
}

}  // namespace

absl::Status PrepareOldProcessor() {
  if (!__builtin_cpu_supports("sse4.1")) {
    return absl::FailedPreconditionError(
        absl::StrCat("libtorch computes on x86-64 with SSE4.1 at least, and this processor (",
                     NameOfProcessor(), ") has none: take a machine of x86-64-v2 or newer"));
  }
  if (!__builtin_cpu_supports("avx2")) at::globalContext().setUserEnabledNNPACK(false);
  return absl::OkStatus();
}

}  // namespace tutti::device::cpu
#else

namespace tutti::device::cpu {

absl::Status PrepareOldProcessor() { return absl::OkStatus(); }

}  // namespace tutti::device::cpu
#endif
