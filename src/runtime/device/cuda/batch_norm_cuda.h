// Computes batch-norm in train mode with what stands around it in a network: an addition, a ReLU
// and, in backward, the sum of two gradients. Channels-last bf16 activations, fp32 parameters and
// statistics. Plain CUDA: no torch here.
//
//   y = relu(w x^ + b + residual),  x^ = (x - mean) / sqrt(variance + e)
//
// An activation is read from memory once for the statistics and once to be normalised, and so in
// backward: bytes are what these layers cost. A bit per element says where y > 0; without a
// residual it is found again from x.
//
// Sums are taken in an order that depends on the shape alone, so that they have the same bits every
// time. Launches go to `stream` and are complete when it is; errors are CUDA's (cudaSuccess: 0).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tutti::device {

// [rows, channels], rows = N H W. channels is a multiple of 8 and at most 8192.
struct Activations {
  int64_t rows = 0;
  int channels = 0;
};

// Returns how many floats a call needs besides, of any content; calls on one stream may share them.
int64_t ScratchFloats(const Activations& shape);

// Vectors of [channels] in fp32; statistics are those of the batch.
struct Normalisation {
  const float *weight, *bias;
  float *mean, *inverse_deviation;    // written by forward
  float *running_mean, *running_var;  // updated by forward
  int64_t* batches;                   // counts the calls; may be null
  float momentum, epsilon;
};

// `residual` may be null. `positive` (rows * channels / 8 bytes) is written where there is one.
cudaError_t BatchNormForward(const Activations& shape, const void* x, const void* residual, void* y,
                             uint8_t* positive, bool relu, const Normalisation& norm,
                             float* scratch, cudaStream_t stream);

struct Gradients {
  const void *dy, *dy2;     // their sum is y's gradient; dy2 may be null
  const uint8_t* positive;  // as forward wrote it; null without a residual
  void* masked;  // gets the residual's gradient; null where none is wanted and dy2 is null
  void* dx;
  float *weight, *bias;  // [channels]
};

cudaError_t BatchNormBackward(const Activations& shape, const void* x, bool relu,
                              const Normalisation& norm, const Gradients& gradients, float* scratch,
                              cudaStream_t stream);

}  // namespace tutti::device
