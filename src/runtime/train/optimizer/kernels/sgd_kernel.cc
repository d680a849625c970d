#include "runtime/train/optimizer/kernels/sgd_kernel.h"

#include "base/machine/vector_width.h"
#include "runtime/train/optimizer/kernels/parallel_update.h"

namespace tutti::train {
namespace {

template <typename T>
TUTTI_INLINE void Update(T* __restrict values, T* __restrict velocities,
                         const T* __restrict gradients, size_t count, const SgdCoefficients& c) {
  const T learning_rate = static_cast<T>(c.learning_rate);
  const T momentum = static_cast<T>(c.momentum);
  const T decay = static_cast<T>(c.weight_decay);
  // Plain momentum is Nesterov's with the look-ahead taken out: one loop without a branch.
  const T of_gradient = c.nesterov ? T{1} : T{0};
  const T of_velocity = c.nesterov ? momentum : T{1};
  for (size_t i = 0; i < count; ++i) {
    const T gradient = gradients[i] + decay * values[i];
    const T velocity = momentum * velocities[i] + gradient;
    velocities[i] = velocity;
    values[i] -= learning_rate * (of_gradient * gradient + of_velocity * velocity);
  }
}

template <typename T>
void UpdateInParts(T* values, T* velocities, const T* gradients, size_t count,
                   const SgdCoefficients& coefficients, int threads) {
  ParallelFor(count, threads, [&](size_t begin, size_t end) {
    base::Vectorised([&]() TUTTI_INLINE_BODY {
      Update(values + begin, velocities + begin, gradients + begin, end - begin, coefficients);
    });
  });
}

}  // namespace

void SgdUpdate(float* values, float* velocities, const float* gradients, size_t count,
               const SgdCoefficients& coefficients, int threads) {
  UpdateInParts(values, velocities, gradients, count, coefficients, threads);
}

void SgdUpdate(double* values, double* velocities, const double* gradients, size_t count,
               const SgdCoefficients& coefficients, int threads) {
  UpdateInParts(values, velocities, gradients, count, coefficients, threads);
}

}  // namespace tutti::train
