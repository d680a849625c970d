// Computes batch-norm in train mode with the statistics of the mini-batch over all ranks, forward
// and backward. Internal to this room: BatchNorm switches to it.
#pragma once

#include <torch/types.h>

#include "runtime/models/model.h"

namespace tutti::models {

struct BatchNormTensors {
  torch::Tensor weight, bias, running_mean, running_var;  // [C]; the running ones are updated
  double epsilon;
};

// Computes, with n, m and v the count, mean and biased variance over all ranks, x^ = (x - m) /
// sqrt(v + e):
//   y  = w x^ + b
//   dx = w / sqrt(v + e) * (dy - sum(dy) / n - x^ sum(dy x^) / n)
// where the sums run over all ranks. dw and db are this rank's own sums: whoever reduces gradients
// adds them up with all the others. A rank may bring no image.
torch::Tensor SynchronizedBatchNorm(const torch::Tensor& images, const BatchNormTensors& tensors,
                                    const SumOverRanks& sum);

}  // namespace tutti::models
