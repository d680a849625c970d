// Computes AdamW's update over flat memory, in one vectorised pass. No torch here.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tutti::train {

struct AdamCoefficients {
  double learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;  // what the moments keep of themselves
  double epsilon = 1e-8;
  double weight_decay = 0;  // decoupled: of the value, not added to the gradient
};

// Does the t-th update by the formula of adamw.h. The four arrays have `count` elements and do not
// overlap. Shared by `threads` threads of OpenMP, whose number changes no bit.
void AdamUpdate(float* values, float* first, float* second, const float* gradients, size_t count,
                const AdamCoefficients& coefficients, int64_t t, int threads = 1);
void AdamUpdate(double* values, double* first, double* second, const double* gradients,
                size_t count, const AdamCoefficients& coefficients, int64_t t, int threads = 1);

}  // namespace tutti::train
