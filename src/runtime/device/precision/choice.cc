#include "runtime/device/precision/choice.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tutti::device {
namespace {

constexpr int kFirstGpuWithBf16 = 8;  // major compute capability; NVIDIA's Ampere

std::string Warning(absl::string_view subject, absl::string_view why, absl::string_view how,
                    Bf16Reason reason) {
  const bool kept = reason == Bf16Reason::kKept;
  return absl::StrCat(
      kept ? "the run that is resumed computes in bf16, and " : "bf16 was asked for, and ", subject,
      " ", why, how,
      kept ? "; --precision fp32 goes on faster" : "; --precision auto takes what is fastest");
}

}  // namespace

PrecisionChoice Choose(const PrecisionFacts& facts) {
  switch (facts.bf16) {
    case Bf16::kNative:
      return {true, absl::StrCat("has instructions for bf16 (", facts.name, ")")};
    case Bf16::kEmulated:
      return {false, absl::StrCat("emulates bf16 (", facts.name, ")")};
    case Bf16::kInDoubt:
      break;
  }
  if (!facts.slowdown) {
    return {false, absl::StrCat("may emulate bf16, which could not be timed (", facts.name, ")")};
  }
  return {*facts.slowdown < 1,
          absl::StrFormat("takes %.2f times fp32's time for a layer in bf16 (%s)", *facts.slowdown,
                          facts.name)};
}

PrecisionTaken Taken(const PrecisionChoice& choice, absl::string_view subject) {
  const std::string precision = choice.bf16 ? "bf16" : "fp32";
  return {precision, absl::StrCat("precision ", precision, " (auto): ", subject, " ", choice.why)};
}

Bf16 Bf16OfGpu(int major) { return major >= kFirstGpuWithBf16 ? Bf16::kNative : Bf16::kEmulated; }

std::string WarningOf(const PrecisionFacts& facts, absl::string_view subject, Bf16Reason reason) {
  std::string how = ", how much slower it is could not be timed";
  if (facts.slowdown) {
    how = absl::StrFormat(": a layer takes %.1f times fp32's time", *facts.slowdown);
  }
  if (facts.bf16 == Bf16::kInDoubt) how.clear();  // Choose says it
  return Warning(subject, Choose(facts).why, how, reason);
}

std::string WarningOfAnother(absl::string_view why, absl::string_view subject, Bf16Reason reason) {
  return Warning(subject, why, ", and its log says how many times fp32's time a layer takes",
                 reason);
}

}  // namespace tutti::device
