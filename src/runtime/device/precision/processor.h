// Tells what a processor can do with bf16, by its instructions and by the variables that hold
// tutti's kernels or oneDNN's to fewer. No torch here. Thread-safe.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "base/machine/instruction_set.h"
#include "runtime/device/precision/choice.h"

namespace tutti::device {

struct Processor {
  std::string model;  // as /proc/cpuinfo has it, "AMD EPYC 7B13"; what it lacks on ARM is a number
  std::string flags;  // all that it says it has
};

// Parses the text of /proc/cpuinfo; returns the first processor.
Processor ParseProcessor(absl::string_view cpuinfo);
const Processor& ThisProcessor();

struct Bf16Instructions {
  base::InstructionSet set = base::InstructionSet::kPlain;
  bool avx512_bf16 = false, amx = false, arm_bf16 = false;
  std::string onednn;  // ONEDNN_MAX_CPU_ISA, to which libtorch's convolutions are held; "": not
};

// Returns native by AVX512-BF16 and AMX; in doubt on ARM with bf16, of which there are slow and
// fast kinds; else emulated, also on AVX-512 without it (a short run of ResNet-20 takes 1.9 times
// fp32's time there). What oneDNN is held to counts as if the processor had no more.
Bf16 Bf16OfProcessor(const Bf16Instructions& has);
Bf16Instructions InstructionsHere();

// Returns "AMD EPYC 7B13, AVX2".
std::string NameOfThisProcessor();

}  // namespace tutti::device
