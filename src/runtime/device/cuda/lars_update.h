// Updates parameters by LARS over flat memory on a GPU: train/optimizer/kernels/layerwise_kernel.h
// has the formula. No torch here.
#pragma once

#include <cuda_runtime_api.h>

#include "update.h"

namespace tutti::device {

struct LarsStep : Update {
  float* velocities;
  double momentum, trust;
};

// Makes two passes, for the norms come first. `scratch`: ScratchDoubles of them.
cudaError_t LarsUpdate(const LarsStep& step, double* scratch, cudaStream_t stream);

}  // namespace tutti::device
