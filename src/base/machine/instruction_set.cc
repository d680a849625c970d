#include "base/machine/instruction_set.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/log.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace tutti::base {
namespace {

constexpr char kOwn[] = "TUTTI_CPU_CAPABILITY";
constexpr char kLibtorchs[] = "ATEN_CPU_CAPABILITY";

#if defined(__x86_64__)
bool HasAmxWithBf16() {
  constexpr unsigned kBf16 = 1u << 22, kTiles = 1u << 24;  // of EDX, leaf 7
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kBf16) != 0 && (d & kTiles) != 0;
}

// Returns whether the processor has what else belongs to x86-64-v3 and not every compiler's
// function knows by name: a virtual machine may hide it, and LZCNT would then silently be another
// instruction.
bool HasRestOfV3() {
  constexpr unsigned kMovbe = 1u << 22, kF16c = 1u << 29;  // of ECX, leaf 1
  constexpr unsigned kLzcnt = 1u << 5;                     // of ECX, leaf 0x80000001
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kMovbe) == 0 || (c & kF16c) == 0) return false;
  return __get_cpuid(0x80000001, &a, &b, &c, &d) != 0 && (c & kLzcnt) != 0;
}

// Returns what the processor has and the operating system saves: the compiler's functions look at
// both.
Instructions OfThisProcessor() {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
      !__builtin_cpu_supports("bmi") || !__builtin_cpu_supports("bmi2") || !HasRestOfV3()) {
    return {};
  }
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512cd") || !__builtin_cpu_supports("avx512dq") ||
      !__builtin_cpu_supports("avx512vl")) {
    return {InstructionSet::kAvx2, false, false, ""};
  }
  return {InstructionSet::kAvx512, __builtin_cpu_supports("avx512bf16") != 0, HasAmxWithBf16(), ""};
}
#else
Instructions OfThisProcessor() { return {}; }
#endif

std::optional<InstructionSet> Named(absl::string_view value) {
  if (value == "default") return InstructionSet::kPlain;
  if (value == "avx2") return InstructionSet::kAvx2;
  if (value == "avx512") return InstructionSet::kAvx512;
  return std::nullopt;
}

void HoldTo(InstructionSet most, absl::string_view variable, absl::string_view value,
            Instructions& held) {
  const bool takes_away = held.set > most || held.avx512_bf16 || held.amx;
  if (!takes_away) return;
  held = {std::min(held.set, most), false, false, absl::StrCat(variable, "=", value)};
}

absl::string_view ValueOf(const char* variable) {
  const char* const value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

const Instructions& Usable() {
  static const Instructions usable = [] {
    const Instructions processor = OfThisProcessor();
    const auto held = Held(processor, ValueOf(kOwn), ValueOf(kLibtorchs));
    if (held.ok()) return *held;
    Warn(absl::StrCat(held.status().message(), "; it is left out of account"));
    return Held(processor, "", ValueOf(kLibtorchs)).value();
  }();
  return usable;
}

}  // namespace

absl::StatusOr<Instructions> Held(const Instructions& processor, absl::string_view own,
                                  absl::string_view libtorch) {
  Instructions held = processor;
  const auto by_libtorch = Named(libtorch);
  if (by_libtorch && *by_libtorch != InstructionSet::kAvx512) {
    HoldTo(*by_libtorch, kLibtorchs, libtorch, held);
  }
  if (own.empty()) return held;
  const auto by_own = Named(own);
  if (!by_own) {
    return absl::InvalidArgumentError(
        absl::StrCat(kOwn, " must be default, avx2 or avx512, and not \"", own, "\""));
  }
  HoldTo(*by_own, kOwn, own, held);
  return held;
}

InstructionSet UsableInstructionSet() { return Usable().set; }
bool MayUseAvx512Bf16() { return Usable().avx512_bf16; }
bool MayUseAmx() { return Usable().amx; }

std::string DescribeInstructionSet() {
  const Instructions& usable = Usable();
  std::string text = "no vector instructions beyond the processor's basic ones";
  if (usable.set == InstructionSet::kAvx2) text = "AVX2";
  if (usable.set == InstructionSet::kAvx512) text = "AVX-512";
  if (usable.avx512_bf16) absl::StrAppend(&text, " with BF16 products");
  if (usable.amx) absl::StrAppend(&text, usable.avx512_bf16 ? " and AMX" : " with AMX");
  if (!usable.held_by.empty()) absl::StrAppend(&text, " (held to it by ", usable.held_by, ")");
  return text;
}

}  // namespace tutti::base
