// Measures in a few seconds what this machine is good for, for `tutti-train --describe-machine`
// and, with it, `tutti doctor`.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/device/precision/choice.h"
#include "runtime/device/precision/gpu.h"

namespace tutti::train {

struct MachineReport {
  std::string processor;     // "AMD EPYC 7B13"
  std::string instructions;  // "AVX2"
  int threads = 1;           // that computed, of one rank alone
  double memory_speed = 0;   // bytes a second, over all threads
  device::PrecisionTaken precision;
  std::string device = "cpu";  // or "cuda", what computed the steps
  // Training ResNet-20 on images of 32x32, batch 64; and what that were if no other program ran: on
  // a CPU by the processor time of a step, which is right where threads wait asleep
  // (OMP_WAIT_POLICY=passive).
  double images_per_second = 0, images_per_second_alone = 0;
  std::optional<device::Gpu> gpu;
  std::string no_gpu;  // why there is none to compute on
};

// Uses all cores of this process and the GPU that there is. Errors of libtorch are Internal.
absl::StatusOr<MachineReport> DescribeMachine();

// Returns one line: {"processor", "instructions", "threads", "memory_speed", "precision", "why",
// "device", "images_per_second", "images_per_second_alone", "gpu": {"name", "compute_capability",
// "memory"} or null, "no_gpu"}.
std::string AsJson(const MachineReport& report);

}  // namespace tutti::train
