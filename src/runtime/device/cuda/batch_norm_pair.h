// Computes the sum of two batch-norms in train mode, as where a residual block projects its
// shortcut:
//
//   y = relu(w x^ + b + w2 x2^ + b2)
//
// Neither of the two is ever written. For the rest see batch_norm_cuda.h.
#pragma once

#include "batch_norm_cuda.h"

namespace tutti::device {

struct Pair {
  const void *x, *x2;
  Normalisation norm, norm2;
};

// Computes y; `scratch`: twice ScratchFloats.
cudaError_t PairForward(const Activations& shape, const Pair& pair, void* y, uint8_t* positive,
                        float* scratch, cudaStream_t stream);

struct PairGradients {
  const void *dy, *dy2;     // their sum is y's gradient; dy2 may be null
  const uint8_t* positive;  // as forward wrote it
  void* masked;             // as large as y
  void *dx, *dx2;
  float *weight, *bias, *weight2, *bias2;  // [channels]
};

cudaError_t PairBackward(const Activations& shape, const Pair& pair, const PairGradients& gradients,
                         float* scratch, cudaStream_t stream);

}  // namespace tutti::device
