// Updates parameters by stochastic gradient descent over flat memory on a GPU, in one pass:
// train/optimizer/kernels/sgd_kernel.h has the arithmetic. No torch here.
#pragma once

#include <cuda_runtime_api.h>

#include "update.h"

namespace tutti::device {

struct SgdStep : Update {
  float* velocities;
  double momentum;
  bool nesterov;
};

cudaError_t SgdUpdate(const SgdStep& step, cudaStream_t stream);

}  // namespace tutti::device
