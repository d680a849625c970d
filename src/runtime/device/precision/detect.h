// Finds out what decides on the precision of this machine's processor or GPU (choice.h): from its
// instructions and, where these leave doubt, by timing one layer, which takes a moment the first
// time and is kept for this machine and this build of the program (measurement_cache.h).
//
// Thread-compatible.
#pragma once

#include <torch/types.h>

#include "absl/strings/string_view.h"
#include "runtime/device/precision/choice.h"
#include "runtime/device/precision/measurement_cache.h"

namespace tutti::device {

// Returns what the instructions alone tell; nothing is timed.
PrecisionFacts InstructionFactsOf(torch::Device device);

// Returns the same, timed where that leaves doubt. Call when the process computes as it is going to
// (train::PrepareMachine): with its threads and with tutti's own convolutions.
PrecisionFacts FactsOf(torch::Device device);

// Adds facts.slowdown, whatever is known already; leaves it out where the layer cannot be computed
// there.
void AddSlowdown(torch::Device device, PrecisionFacts& facts);

// Returns what one process alone computes in. `asked`: "auto", "fp32" or "bf16"; what is asked for
// by name is not found out about, but bf16 that is emulated is warned of in the log. (Of several
// ranks: train/setup/precision.h.)
PrecisionTaken DetectPrecision(absl::string_view asked, torch::Device device);

// Measures seconds in bf16 over seconds in fp32 of a 3x3 convolution of 64 channels over 16 images
// of 16x16, forward and backward: the least of a few, in turn; on a CPU of one thread's processor
// time, which other programs do not change. Exceptions of libtorch pass.
double TimeOneLayer(torch::Device device);

}  // namespace tutti::device
