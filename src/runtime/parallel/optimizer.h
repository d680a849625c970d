// Optimizer updates the parameters in a strategy's buckets from the gradients there. A new one: a
// header of its own with formula and source, and a line in train/optimizer/optimizers.cc.
// Thread-compatible.
//
// On a CPU an update is one pass over each bucket (train/optimizer/kernels/); on a GPU a kernel
// over chunks of it (gpu_kernels.h). Without those, and wherever else a bucket may hold what is not
// finite, it is libtorch's operators, in several passes.
#pragma once

#include <torch/types.h>

#include <functional>
#include <memory>

#include "runtime/models/model.h"
#include "runtime/parallel/bucket.h"
#include "runtime/parallel/state_tensor.h"

namespace tutti::parallel {

class Optimizer {
 public:
  using Buckets = parallel::Buckets;

  virtual ~Optimizer() = default;
  virtual void Step(double learning_rate) = 0;
  // Puts what the finished model has in the place of what is trained, if that differs (averages:
  // train/optimizer/weight_average.h); again: back.
  virtual void SwapWeights() {}
  // Returns its memory, as views.
  virtual State state() = 0;
};

// Makes the optimizer of a model whose trained parameters lie in these buckets; both outlive it.
using OptimizerFactory =
    std::function<std::unique_ptr<Optimizer>(const Buckets& buckets, const models::Model& model)>;

}  // namespace tutti::parallel
