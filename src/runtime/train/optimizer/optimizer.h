// Optimizer updates the parameters in a strategy's buckets from the gradients there. A new one: a
// header of its own with formula and source, and a line in optimizers.cc. Thread-compatible.
//
// On a CPU an update is one pass over each bucket (kernels/); on a GPU a kernel over chunks of it
// (gpu_kernels.h). Without those, and wherever else a bucket may hold what is not finite, it is
// libtorch's operators, in several passes.
#pragma once

#include <torch/types.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/parallel/bucket.h"

namespace tutti::train {

class Optimizer {
 public:
  using Buckets = std::vector<std::unique_ptr<parallel::Bucket>>;

  virtual ~Optimizer() = default;
  virtual void Step(double learning_rate) = 0;
  // Puts what the finished model has in the place of what is trained, if that differs (averages:
  // weight_average.h); again: back.
  virtual void SwapWeights() {}
  // Returns its memory by name ("momentum.layer1.0.conv1.weight"), as views: what a checkpoint
  // keeps, and through which it is restored.
  virtual std::map<std::string, torch::Tensor> State() = 0;
  // Returns the same memory as few flat tensors: what is sent to another rank.
  virtual std::vector<torch::Tensor> FlatState() = 0;
};

// Adds the parameters' parts of `flat`, a tensor [size] for each bucket, to a State() as
// "<prefix><name>".
void AddByName(const std::string& prefix, const Optimizer::Buckets& buckets,
               const std::vector<torch::Tensor>& flat, std::map<std::string, torch::Tensor>& state);

}  // namespace tutti::train
