// A gradient predictor guesses, of what a stage of a model gives to the next one, the gradient that
// will come back: a decoupled neural interface (Jaderberg et al. 2017, "Decoupled Neural Interfaces
// using Synthetic Gradients", arXiv 1608.05343; told the labels: Czarnecki et al. 2017,
// arXiv 1703.00522).
//
//   Outputs({activation, targets})[0] -> gradient, of the activation's shape
//
// The gradient is that of the sum of the samples' losses, so that it does not depend on how many
// there are. It is found for each place of an activation [n, C, H, W] from the channels there, as
// the kind says around it, and from their mean over all places, by which the last layers go; of
// [n, C] and [n, T, C] for each T apart.
//
// An auxiliary classifier waits for no truth: it tells classes by the mean over all places, and
// gives the gradient of its own loss (Belilovsky et al. 2019, "Greedy Layerwise Learning Can Scale
// to ImageNet", arXiv 1812.11446). That loss, of the samples together, is Outputs(...)[1].
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/models/model.h"

namespace tutti::models {

struct PredictorSpec {
  // "linear": an affine map of the channels. "convolutions": two layers with a ReLU between, 3x3
  // convolutions of images, linear layers else. "zero": always zero. "random": as "convolutions",
  // with a last layer that is drawn too. "auxiliary": see above; it must be told the classes.
  std::string kind = "linear";
  int64_t width = 0;    // channels between the two layers; 0: a quarter of the activation's
  int64_t classes = 0;  // of the targets, [n] or [n, classes], that it is told; 0: it is not

  // Tells whether it is to be trained; the others are what such a one must be better than.
  bool is_trained() const { return kind != "zero" && kind != "random"; }
  // Tells whether it learns by a loss of its own.
  bool is_auxiliary() const { return kind == "auxiliary"; }
};

// Lists the kinds.
const std::vector<absl::string_view>& PredictorKinds();

// Makes one for activations like this one, [n, ...], in fp64 if they are and else in fp32, on the
// CPU. What is trained begins with a guess of zero: its last layer is zero, and the rest what
// (seed, name) decide. InvalidArgument: no such kind, an activation of another
// shape, or no classes where they must be told.
absl::StatusOr<Model> MakePredictor(const PredictorSpec& spec, const torch::Tensor& activation,
                                    uint64_t seed, const std::string& name);

}  // namespace tutti::models
