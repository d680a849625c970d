// Says which vector instructions tutti's own kernels may use. Only this file asks the processor and
// reads the variables that hold kernels to fewer instructions than it has:
//
//   TUTTI_CPU_CAPABILITY   default, avx2 or avx512: tutti's own kernels use no more than this;
//                          avx512 leaves out what came after x86-64-v4 (BF16 products, AMX).
//   ATEN_CPU_CAPABILITY    libtorch's own variable: its "default" and "avx2" hold tutti's kernels
//                          as well. Other values do not.
//
// Both are read once, at the first call: set them before the program starts. A value of
// TUTTI_CPU_CAPABILITY that is none of the three holds nothing and is warned of in the log. On
// other processors than x86-64 there is kPlain alone, which is what the compiler makes of the same
// kernels (on aarch64 NEON). Thread-safe.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::base {

// Each has what the one before it has. kAvx2 is x86-64-v3 (with FMA and BMI2), kAvx512 is x86-64-v4
// (F, BW, CD, DQ and VL).
enum class InstructionSet { kPlain, kAvx2, kAvx512 };

// Returns what kernels may use in this process.
InstructionSet UsableInstructionSet();

// Returns the kernel that was compiled for `set`.
template <typename Kernel>
constexpr const Kernel& For(InstructionSet set, const Kernel& avx512, const Kernel& avx2,
                            const Kernel& plain) {
  if (set == InstructionSet::kAvx512) return avx512;
  return set == InstructionSet::kAvx2 ? avx2 : plain;
}

// Returns whether this processor multiplies pairs of bf16 by AVX-512 (AVX512_BF16), or by tiles
// (AMX), and no variable forbids it. For AMX the kernel has to be asked as well: see HasAmx() of
// runtime/device/cpu/bf16/amx.h.
bool MayUseAvx512Bf16();
bool MayUseAmx();

// Describes it for a program's first lines: "AVX2 (held to it by TUTTI_CPU_CAPABILITY=avx2)",
// "AVX-512 with BF16 products".
std::string DescribeInstructionSet();

// Decides what the functions above answer, by what a processor has and what the two variables say
// ("" where they are not set). A value of `own` that does not exist is InvalidArgument, with those
// that do.
struct Instructions {
  InstructionSet set = InstructionSet::kPlain;
  bool avx512_bf16 = false, amx = false;
  std::string held_by;  // the variable and its value, if one takes something away
};
absl::StatusOr<Instructions> Held(const Instructions& processor, absl::string_view own,
                                  absl::string_view libtorch);

}  // namespace tutti::base
