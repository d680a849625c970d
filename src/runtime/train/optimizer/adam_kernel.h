// The arithmetic of AdamW over flat memory, in one vectorised pass. No torch here.
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

// With g the gradient, p the value, m and v the moments (zero at first), at the t-th update:
//   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g g
//   p = (1 - learning_rate weight_decay) p
//       - learning_rate (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)
// The four arrays have `count` elements and do not overlap. Shared by `threads` threads of OpenMP,
// whose number changes no bit.
void AdamUpdate(float* values, float* first, float* second, const float* gradients, size_t count,
                const AdamCoefficients& coefficients, int64_t t, int threads = 1);
void AdamUpdate(double* values, double* first, double* second, const double* gradients,
                size_t count, const AdamCoefficients& coefficients, int64_t t, int threads = 1);

}  // namespace tutti::train
