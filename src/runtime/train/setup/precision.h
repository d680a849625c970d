// Agrees on the precision that a run computes in: what its recipe asks for or, of "auto", what is
// fastest on the processor or GPU of every rank (device/precision/), the same on all.
#pragma once

#include <torch/types.h>

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/deadline.h"
#include "runtime/comm/communicator.h"
#include "runtime/device/precision/choice.h"
#include "runtime/train/recipe/recipe.h"

namespace tutti::train {

using device::PrecisionTaken;

// Every rank of the group calls it, after PrepareMachine. `asked`: "auto", "fp32" or "bf16".
// `kept`: what the run had that is resumed, which stands for "auto"; rank 0's counts; "": none.
//
// For "auto", bf16 where it is fastest on every rank, else fp32. What is named, or kept, is taken
// as it is: nothing is found out for fp32, nothing is timed for bf16, but bf16 on a rank whose
// instructions do not have it is warned of, of several the first one's: in that rank's log, with
// how many times slower a layer is, and in rank 0's. Does not communicate in a group of one.
//
// InvalidArgument, on every rank: they were asked for different ones.
absl::StatusOr<PrecisionTaken> TakePrecision(absl::string_view asked, absl::string_view kept,
                                             torch::Device device, comm::Communicator& group,
                                             base::Deadline deadline);

// Returns whether the recipe's 3x3 convolutions go by Winograd's products, in its precision
// (runtime/device/cpu/bf16/convolution_bf16.h, fp32/convolution_fp32.h). Where it does not say, all
// do in fp32, which is hardly less exact by them, and in bf16 those of tutti's own networks: a
// TorchScript module may have been trained with exact ones, and nobody has seen what it makes of
// others.
bool UsesWinograd(const Recipe& recipe);

// Returns the same for a run of the group, of which every rank calls it, its precision taken: where
// the recipe does not say, what the run had that is resumed, `kept`, of which rank 0's counts;
// none: UsesWinograd. Does not communicate in a group of one.
absl::StatusOr<bool> TakeWinograd(const Recipe& recipe, std::optional<bool> kept,
                                  comm::Communicator& group, base::Deadline deadline);

// Where the facts of this rank come from, which TakePrecision has of its device: what decides where
// nothing was named, and what tells of bf16 that was whether it is emulated. May be timed: the
// first.
struct FactsSource {
  std::function<device::PrecisionFacts()> measured, of_instructions;
  std::function<void(device::PrecisionFacts&)> add_slowdown;
};
absl::StatusOr<PrecisionTaken> TakePrecision(absl::string_view asked, absl::string_view kept,
                                             const FactsSource& source, comm::Communicator& group,
                                             base::Deadline deadline);

// What one rank tells the others.
struct RankPrecision {
  std::string asked, kept;
  bool bf16 = false;  // is fastest there; where it was named: is not emulated there
  std::string kind;   // "processor" or "GPU"
  std::string why;    // device::PrecisionChoice's
};
struct AgreedPrecision {
  PrecisionTaken taken;
  int emulating = -1;  // the first rank that emulates what is taken; below 0: none
};
// Returns the decision apart from the exchange, for `rank`.
AgreedPrecision Agree(std::span<const RankPrecision> ranks, int rank);

}  // namespace tutti::train
