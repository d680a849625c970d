// Computes the updates of LARS and LAMB over the flat memory of one layer's weights: norms first,
// then one vectorised pass. No torch here.
//
// Norms are sums in fp64 over blocks of a fixed size, added up in their order, so that the number
// of `threads` (of OpenMP) changes no bit. Arrays have `count` elements and do not overlap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/train/optimizer/kernels/adam_kernel.h"

namespace tutti::train {

struct LarsCoefficients {
  double learning_rate = 1;
  double momentum = 0.9;
  double weight_decay = 0;
  double trust = 0.001;  // eta of the paper
};

// Does one update by the formula of lars.h.
void LarsUpdate(float* values, float* velocities, const float* gradients, size_t count,
                const LarsCoefficients& coefficients, int threads = 1);
void LarsUpdate(double* values, double* velocities, const double* gradients, size_t count,
                const LarsCoefficients& coefficients, int threads = 1);

// Does the t-th update by the formula of lamb.h.
void LambUpdate(float* values, float* first, float* second, const float* gradients, size_t count,
                const AdamCoefficients& coefficients, int64_t t, int threads = 1);
void LambUpdate(double* values, double* first, double* second, const double* gradients,
                size_t count, const AdamCoefficients& coefficients, int64_t t, int threads = 1);

}  // namespace tutti::train
