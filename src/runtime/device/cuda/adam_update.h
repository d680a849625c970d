// Updates parameters by AdamW and LAMB over flat memory on a GPU:
// train/optimizer/kernels/adam_kernel.h and layerwise_kernel.h have the formulas. No torch here.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "update.h"

namespace tutti::device {

struct AdamStep : Update {
  float *first, *second;
  double beta1, beta2, epsilon;
  int64_t t;  // number of this update, from 1 on
};

// Makes one pass over memory.
cudaError_t AdamWUpdate(const AdamStep& step, cudaStream_t stream);

// Makes two, for the norms come first. `scratch`: ScratchDoubles of them.
cudaError_t LambUpdate(const AdamStep& step, double* scratch, cudaStream_t stream);

}  // namespace tutti::device
