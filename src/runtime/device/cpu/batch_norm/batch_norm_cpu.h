// Computes batch-norm in train mode with what stands around it in a network: an addition, a ReLU
// and, in backward, the sum of two gradients. Channels-last activations in fp32 or bf16 (T is
// float, or uint16_t for bf16's bits), fp32 parameters and statistics, as cuda/batch_norm_cuda.h
// has it. No torch here.
//
//   y = relu(w x^ + b + residual),  x^ = (x - mean) / sqrt(variance + e)
//
// An activation is larger than the caches and bytes are what these layers cost, so it is read once
// for the statistics and once to be normalised, and so in backward. The second pass goes through it
// from its end, which the caches still hold. Where y was not positive is found again from x, or
// read from y where an addition stood in between.
//
// Sums are taken in an order that depends on the shape and the number of threads alone. Work is
// shared by `threads` threads of OpenMP, libtorch's own pool. Thread-safe.
#pragma once

#include <cstdint>

#include "runtime/device/cpu/vector/lanes.h"

namespace tutti::device::cpu {

// [rows, channels], rows = N H W.
struct Activations {
  int64_t rows = 0, channels = 0;
};

// Vectors hold 32 values. Rows are taken together until they are full: rows must be a multiple of
// 32 / gcd(channels, 32).
bool Takes(const Activations& shape);

// Vectors of [channels] in fp32; statistics are those of the batch.
struct Normalisation {
  const float *weight, *bias;
  float *mean, *inverse_deviation;    // written by forward
  float *running_mean, *running_var;  // updated by forward
  float momentum, epsilon;
};

// `residual` may be null.
template <Element T>
void BatchNormForward(const Activations& shape, const T* x, const T* residual, T* y, bool relu,
                      const Normalisation& norm, int threads);

template <Element T>
struct Gradients {
  const T *dy, *dy2;  // their sum is y's gradient; dy2 may be null
  const T* y;         // what forward gave; null without a residual or without a ReLU
  T* masked;          // gets the residual's gradient; null where none is wanted and dy2 is null
  T* dx;
  float *weight, *bias;  // [channels]
};

template <Element T>
void BatchNormBackward(const Activations& shape, const T* x, bool relu, const Normalisation& norm,
                       const Gradients<T>& gradients, int threads);

}  // namespace tutti::device::cpu
