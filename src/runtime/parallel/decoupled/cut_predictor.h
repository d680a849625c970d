// CutPredictor guesses, behind a stage, the gradient of what it gives to the next one, and learns
// from the one that comes: a gradient predictor with an optimizer and a scale of its own.
//
// The loss is |guess - gradient / scale|^2 of a sample, the gradients those of the samples' summed
// losses, and the scale a running mean of their root mean square: what an optimizer changes in a
// step is then small beside what there is to be guessed, at whichever cut. An auxiliary classifier
// has a loss of its own, and a scale of 1. Thread-compatible.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/models/networks/gradient_predictor.h"
#include "runtime/parallel/optimizer.h"
#include "runtime/parallel/strategy.h"

namespace tutti::parallel {

class CutPredictor {
 public:
  // `behind` is the first layer of the stage behind; with the kind, the width and the classes it
  // names what a checkpoint has. Without an optimizer nothing is learnt. InvalidArgument: see
  // MakePredictor.
  static absl::StatusOr<std::unique_ptr<CutPredictor>> Make(
      const models::PredictorSpec& spec, const torch::Tensor& activation, uint64_t seed,
      const std::string& behind, const OptimizerFactory& optimizer, double rate);

  // Returns a gradient of the mean of the samples' losses, of the activation's shape.
  torch::Tensor Guess(const torch::Tensor& activation, const torch::Tensor& targets) const;
  // Takes a step towards the gradient of that mean.
  void Learn(const torch::Tensor& activation, const torch::Tensor& targets,
             const torch::Tensor& gradient);
  int64_t parameters() const;
  // Returns all that a run that goes on needs.
  State state() const;
  // "predictor_error" and "predictor_cosine", means since the last call; see DecoupledStages.
  std::vector<Figure> Figures();

 private:
  CutPredictor(models::Model predictor, std::string name, const models::PredictorSpec& spec,
               const OptimizerFactory& optimizer, double rate);
  // Returns what the predictor says, a guess in units of scale_, of the sum of the losses.
  std::vector<torch::Tensor> Outputs(const torch::Tensor& activation,
                                     const torch::Tensor& targets) const;
  // Returns what its parameters are to go along, of the sum of the losses.
  void Backward(const std::vector<torch::Tensor>& outputs, const torch::Tensor& truth,
                double samples);

  const models::Model predictor_;
  const std::string name_;
  const bool is_auxiliary_;
  const double rate_;
  const Buckets buckets_;
  const torch::Tensor scale_ = torch::zeros({1}, torch::kFloat64);
  std::unique_ptr<Optimizer> optimizer_;
  double error_ = 0, errors_ = 0, cosine_ = 0, cosines_ = 0;  // since Figures
};

}  // namespace tutti::parallel
