// Reads what the kernel says of this processor, for tests that hold against it what tutti found out
// by itself.
#pragma once

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>
#include <string>

#include "absl/strings/ascii.h"
#include "base/machine/instruction_set.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace tutti::base {

// Returns the value of the first line of /proc/cpuinfo with that key; "": there is none.
inline std::string CpuinfoValue(const std::string& key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    if (absl::StripAsciiWhitespace(line.substr(0, colon)) != key) continue;
    return std::string(absl::StripAsciiWhitespace(line.substr(colon + 1)));
  }
  return "";
}

#if defined(__x86_64__)

// Returns the name that CPUID gives to this process. An emulator of processes has a name of its
// own, and passes the machine's /proc/cpuinfo through.
inline std::string CpuidName() {
  std::array<unsigned, 12> text = {};
  for (unsigned leaf = 0; leaf < 3; ++leaf) {
    unsigned* const at = &text[4 * size_t{leaf}];
    if (__get_cpuid(0x80000002 + leaf, at, at + 1, at + 2, at + 3) == 0) return "";
  }
  const auto* const first = reinterpret_cast<const char*>(text.data());
  return std::string(
      absl::StripAsciiWhitespace(std::string(first, ::strnlen(first, sizeof(text)))));
}

// Returns the instructions by the flags of /proc/cpuinfo; none where these are not what this
// process has: it is emulated, or a variable holds it to fewer.
inline std::optional<Instructions> InstructionsByCpuinfo() {
  for (const char* const variable : {"TUTTI_CPU_CAPABILITY", "ATEN_CPU_CAPABILITY"}) {
    if (std::getenv(variable) != nullptr) return std::nullopt;
  }
  if (CpuinfoValue("model name") != CpuidName()) return std::nullopt;
  std::istringstream words(CpuinfoValue("flags"));
  const std::set<std::string> flags{std::istream_iterator<std::string>(words), {}};
  const auto has = [&](std::initializer_list<const char*> wanted) {
    return std::all_of(wanted.begin(), wanted.end(),
                       [&](const char* flag) { return flags.count(flag) != 0; });
  };
  Instructions found;
  // The kernel calls LZCNT "abm".
  if (!has({"avx2", "fma", "bmi1", "bmi2", "movbe", "f16c", "abm"})) return found;
  found.set = InstructionSet::kAvx2;
  if (!has({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"})) return found;
  found.set = InstructionSet::kAvx512;
  found.avx512_bf16 = has({"avx512_bf16"});
  found.amx = has({"amx_tile", "amx_bf16"});
  return found;
}

#else

inline std::optional<Instructions> InstructionsByCpuinfo() { return std::nullopt; }

#endif

}  // namespace tutti::base
