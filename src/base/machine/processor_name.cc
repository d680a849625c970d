#include "base/machine/processor_name.h"

#if defined(__x86_64__)
#include <cpuid.h>

#include <array>
#include <cstring>

#include "absl/strings/ascii.h"

namespace tutti::base {

// The brand string: 48 characters in the registers of three leaves.
std::string ProcessorName() {
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

}  // namespace tutti::base
#else

namespace tutti::base {

std::string ProcessorName() { return ""; }

}  // namespace tutti::base
#endif
