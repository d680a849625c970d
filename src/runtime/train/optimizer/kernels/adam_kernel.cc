#include "runtime/train/optimizer/kernels/adam_kernel.h"

#include <cmath>

#include "base/machine/vector_width.h"
#include "runtime/train/optimizer/kernels/parallel_update.h"

namespace tutti::train {
namespace {

// The coefficients of one update.
template <typename T>
struct Factors {
  Factors(const AdamCoefficients& c, int64_t t)
      : beta1(static_cast<T>(c.beta1)),
        beta2(static_cast<T>(c.beta2)),
        of_gradient(static_cast<T>(1 - c.beta1)),
        of_square(static_cast<T>(1 - c.beta2)),
        kept(static_cast<T>(1 - c.learning_rate * c.weight_decay)),
        step(static_cast<T>(c.learning_rate / (1 - std::pow(c.beta1, t)))),
        root(static_cast<T>(1 / std::sqrt(1 - std::pow(c.beta2, t)))),
        epsilon(static_cast<T>(c.epsilon)) {}
  const T beta1, beta2, of_gradient, of_square, kept, step, root, epsilon;
};

template <typename T>
TUTTI_INLINE void Update(T* __restrict values, T* __restrict first, T* __restrict second,
                         const T* __restrict gradients, size_t count, const Factors<T>& f) {
  for (size_t i = 0; i < count; ++i) {
    const T gradient = gradients[i];
    const T m = f.beta1 * first[i] + f.of_gradient * gradient;
    const T v = f.beta2 * second[i] + f.of_square * gradient * gradient;
    first[i] = m;
    second[i] = v;
    values[i] = f.kept * values[i] - f.step * m / (std::sqrt(v) * f.root + f.epsilon);
  }
}

template <typename T>
void UpdateInParts(T* values, T* first, T* second, const T* gradients, size_t count,
                   const AdamCoefficients& coefficients, int64_t t, int threads) {
  const Factors<T> factors(coefficients, t);
  ParallelFor(count, threads, [&](size_t begin, size_t end) {
    base::Vectorised([&]() TUTTI_INLINE_BODY {
      Update(values + begin, first + begin, second + begin, gradients + begin, end - begin,
             factors);
    });
  });
}

}  // namespace

void AdamUpdate(float* values, float* first, float* second, const float* gradients, size_t count,
                const AdamCoefficients& coefficients, int64_t t, int threads) {
  UpdateInParts(values, first, second, gradients, count, coefficients, t, threads);
}

void AdamUpdate(double* values, double* first, double* second, const double* gradients,
                size_t count, const AdamCoefficients& coefficients, int64_t t, int threads) {
  UpdateInParts(values, first, second, gradients, count, coefficients, t, threads);
}

}  // namespace tutti::train
