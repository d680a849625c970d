// Computes stochastic gradient descent's update over flat memory, in one vectorised pass: each
// element is read once and written once. No torch here.
#pragma once

#include <cstddef>

namespace tutti::train {

struct SgdCoefficients {
  double learning_rate = 0.1;
  double momentum = 0.9;
  double weight_decay = 0;  // L2: added to the gradient
  bool nesterov = false;
};

// Does one update by the formula of sgd.h. The three arrays have `count` elements and do not
// overlap. Shared by `threads` threads of OpenMP, whose number changes no bit.
void SgdUpdate(float* values, float* velocities, const float* gradients, size_t count,
               const SgdCoefficients& coefficients, int threads = 1);
void SgdUpdate(double* values, double* velocities, const double* gradients, size_t count,
               const SgdCoefficients& coefficients, int threads = 1);

}  // namespace tutti::train
