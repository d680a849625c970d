// The arithmetic of LARS and LAMB over the flat memory of one layer's weights: norms first, then
// one vectorised pass. No torch here.
//
// Norms are sums in fp64 over blocks of a fixed size, added up in their order, so that the number
// of `threads` (of OpenMP) changes no bit. Arrays have `count` elements and do not overlap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/train/optimizer/adam_kernel.h"

namespace tutti::train {

struct LarsCoefficients {
  double learning_rate = 1;
  double momentum = 0.9;
  double weight_decay = 0;
  double trust = 0.001;  // eta of the paper
};

// With g the gradients, p the values and v the velocities (zero at first):
//   r = trust |p| / (|g| + weight_decay |p|), or 1 where |p| or |g| is 0
//   v = momentum v + r (g + weight_decay p);  p -= learning_rate v
void LarsUpdate(float* values, float* velocities, const float* gradients, size_t count,
                const LarsCoefficients& coefficients, int threads = 1);
void LarsUpdate(double* values, double* velocities, const double* gradients, size_t count,
                const LarsCoefficients& coefficients, int threads = 1);

// With m and v the moments, as AdamUpdate's, at the t-th update:
//   u = (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon) + weight_decay p
//   p -= learning_rate r u, where r = |p| / |u|, or 1 where one of the two is 0
void LambUpdate(float* values, float* first, float* second, const float* gradients, size_t count,
                const AdamCoefficients& coefficients, int64_t t, int threads = 1);
void LambUpdate(double* values, double* first, double* second, const double* gradients,
                size_t count, const AdamCoefficients& coefficients, int64_t t, int threads = 1);

}  // namespace tutti::train
