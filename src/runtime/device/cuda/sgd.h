// Stochastic gradient descent over flat memory on a GPU, in one pass: train/optimizer/sgd_kernel.h
// has the arithmetic.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tutti::device {

struct SgdStep {
  float *values, *velocities;
  const float* gradients;
  void* copy;  // the values in bf16; may be null
  int64_t count;
  const float* learning_rate;  // on the GPU, so that a captured step can be given another
  const float* spoiled;        // on the GPU; nothing is changed unless it is 0. May be null
  float momentum, weight_decay;
  bool nesterov;
};

cudaError_t SgdUpdate(const SgdStep& step, cudaStream_t stream);

}  // namespace tutti::device
