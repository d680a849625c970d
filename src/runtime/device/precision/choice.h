// Chooses the precision that is fastest on a processor or GPU: a pure decision from what is known
// of it. detect.h finds out what the instructions alone do not tell, and asks it for this machine.
//
// Thread-safe.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace tutti::device {

enum class Bf16 {
  kNative,    // has instructions for products in bf16 that are faster than fp32's
  kInDoubt,   // may have: the layers of this machine's libraries decide
  kEmulated,  // computes in fp32, with conversions before and after
};

// What decides.
struct PrecisionFacts {
  std::string kind;  // "processor" or "GPU"
  std::string name;  // "AMD EPYC 9B45, AVX-512 BF16", "NVIDIA H200, compute capability 9.0"
  Bf16 bf16 = Bf16::kEmulated;
  std::optional<double> slowdown;  // one layer's time in bf16 over fp32's; none: not measured
};

struct PrecisionChoice {
  bool bf16 = false;
  std::string why;  // goes on from the subject: "emulates bf16 (AMD EPYC 7B13, AVX2)"
};

// What a run or a program computes in.
struct PrecisionTaken {
  std::string precision;  // "fp32" or "bf16"
  // The reason in words for the first lines: "precision fp32 (auto): this processor emulates bf16
  // (AMD EPYC 7B13, AVX2)"; empty where the precision was named.
  std::string why;
};

// Chooses bf16 where it is native, or was measured to be faster.
PrecisionChoice Choose(const PrecisionFacts& facts);

// Returns the choice as taken for "auto". `subject`: "this processor", "the processor of rank 3".
PrecisionTaken Taken(const PrecisionChoice& choice, absl::string_view subject);

// Says how a GPU of NVIDIA's computes bf16, by its major compute capability: bf16 came with 8.0.
Bf16 Bf16OfGpu(int major);

// Why a run computes in bf16 where Choose says fp32.
enum class Bf16Reason {
  kAskedFor,  // by name
  kKept,      // by the run that is resumed
};

// Returns the warning about it: "bf16 was asked for, and this processor emulates bf16 (AMD EPYC
// 7B13, AVX2): a layer takes 9.3 times fp32's time; ...". `subject` as above.
std::string WarningOf(const PrecisionFacts& facts, absl::string_view subject, Bf16Reason reason);

// Returns the same for a rank that knows no more of the other one than `why`, of its
// PrecisionChoice: "..., and its log says how many times fp32's time a layer takes; ...".
std::string WarningOfAnother(absl::string_view why, absl::string_view subject, Bf16Reason reason);

}  // namespace tutti::device
