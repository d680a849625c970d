// WeightAverage keeps an exponential moving average of the weights beside the ones that are trained
// (Polyak & Juditsky 1992; as Szegedy et al. 2016 evaluate): after every step
//
//   average = decay average + (1 - decay) value
//
// for parameters and floating buffers (running statistics) alike. Part of the optimizer's state, so
// that checkpoints keep it. Every rank has the same. Thread-compatible.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/models/model.h"
#include "runtime/parallel/optimizer.h"

namespace tutti::train {

class WeightAverage final : public parallel::Optimizer {
 public:
  // Begins with the values that there are. `buckets` and `model` hold the same parameters and
  // outlive it; 0 < decay < 1.
  WeightAverage(std::unique_ptr<parallel::Optimizer> optimizer, const Buckets& buckets,
                models::Model model, double decay);

  void Step(double learning_rate) override;
  void SwapWeights() override;
  parallel::State state() override;  // and "average.<name>"

 private:
  const std::unique_ptr<parallel::Optimizer> optimizer_;
  const Buckets& buckets_;
  const double decay_;
  std::vector<torch::Tensor> values_, averages_;  // of each bucket, then of each buffer
  std::vector<std::string> buffers_;              // names of the latter
};

}  // namespace tutti::train
