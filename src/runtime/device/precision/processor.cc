#include "runtime/device/precision/processor.h"

#include <sys/auxv.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "runtime/device/cpu/bf16/amx.h"

namespace tutti::device {
namespace {

// What oneDNN can be held to that has no products in bf16 (oneDNN's dnnl_cpu_isa_t); AVX2_VNNI_2
// has no more than conversions.
constexpr std::array<absl::string_view, 7> kWithoutBf16 = {
    "SSE41", "AVX", "AVX2", "AVX2_VNNI", "AVX2_VNNI_2", "AVX512_CORE", "AVX512_CORE_VNNI"};

bool OneDnnLacksBf16(const std::string& most) {
  return std::find(kWithoutBf16.begin(), kWithoutBf16.end(), most) != kWithoutBf16.end();
}

std::string OneDnnVariable() {
  for (const char* name : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"}) {
    const char* const value = std::getenv(name);
    if (value != nullptr) return absl::AsciiStrToUpper(value);
  }
  return "";
}

bool HasArmBf16() {
#if defined(__aarch64__)
  constexpr unsigned long kBf16 = 1UL << 14;  // HWCAP2_BF16 of Linux
  return (::getauxval(AT_HWCAP2) & kBf16) != 0;
#else
  return false;
#endif
}

}  // namespace

Processor ParseProcessor(absl::string_view cpuinfo) {
  Processor processor;
  std::string part;
  for (const absl::string_view line : absl::StrSplit(cpuinfo, '\n')) {
    const std::vector<absl::string_view> sides = absl::StrSplit(line, absl::MaxSplits(':', 1));
    if (sides.size() != 2) continue;
    const absl::string_view key = absl::StripAsciiWhitespace(sides[0]);
    const std::string value(absl::StripAsciiWhitespace(sides[1]));
    if (key == "model name" && processor.model.empty()) processor.model = value;
    if ((key == "flags" || key == "Features") && processor.flags.empty()) processor.flags = value;
    if (part.empty() && key == "CPU implementer") part = absl::StrCat("implementer ", value);
    if (!part.empty() && key == "CPU part" && processor.model.empty()) {
      processor.model = absl::StrCat("ARM processor, ", part, ", part ", value);
    }
  }
  if (processor.model.empty()) processor.model = "a processor without a name";
  return processor;
}

const Processor& ThisProcessor() {
  static const Processor processor = ParseProcessor(base::ReadFile("/proc/cpuinfo").value_or(""));
  return processor;
}

Bf16 Bf16OfProcessor(const Bf16Instructions& has) {
  if (OneDnnLacksBf16(has.onednn)) return Bf16::kEmulated;
  if (has.avx512_bf16 || has.amx) return Bf16::kNative;
  return has.arm_bf16 ? Bf16::kInDoubt : Bf16::kEmulated;
}

Bf16Instructions InstructionsHere() {
  return {base::UsableInstructionSet(), base::MayUseAvx512Bf16(), cpu::HasAmx(), HasArmBf16(),
          OneDnnVariable()};
}

std::string NameOfThisProcessor() {
  const Bf16Instructions here = InstructionsHere();
#if defined(__aarch64__)
  std::string text =
      absl::StrCat(ThisProcessor().model, ", NEON", here.arm_bf16 ? " with BF16 products" : "");
#else
  std::string text = absl::StrCat(ThisProcessor().model, ", ", base::DescribeInstructionSet());
#endif
  if (OneDnnLacksBf16(here.onednn)) absl::StrAppend(&text, ", ONEDNN_MAX_CPU_ISA=", here.onednn);
  return text;
}

}  // namespace tutti::device
