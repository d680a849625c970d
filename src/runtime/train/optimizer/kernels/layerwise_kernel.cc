#include "runtime/train/optimizer/kernels/layerwise_kernel.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/machine/vector_width.h"
#include "runtime/train/optimizer/kernels/parallel_update.h"

namespace tutti::train {
namespace {

constexpr size_t kBlock = 1024;  // four arrays of it fit into the first-level cache

// In lanes, which vectors of any width add up alike.
template <typename T>
TUTTI_INLINE double SumOfSquares(const T* __restrict values, size_t count) {
  constexpr size_t kLanes = 16;
  double lanes[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const double value = values[i + lane];
      lanes[lane] += value * value;
    }
  }
  for (size_t lane = 0; i < count; ++i, ++lane) {
    const double value = values[i];
    lanes[lane] += value * value;
  }
  double sum = 0;
  for (double lane : lanes) sum += lane;
  return sum;
}

// Squares of the norms of two arrays, or of a block of them.
struct Squares {
  double of_values = 0, of_updates = 0;
};

// Sum of what `block(begin, size)` gives for every block.
template <typename Block>
Squares SumOverBlocks(size_t count, int threads, const Block& block) {
  const auto blocks_before = [](size_t end) { return (end + kBlock - 1) / kBlock; };
  std::vector<Squares> squares(blocks_before(count));
  ParallelFor(count, threads, [&](size_t begin, size_t end) {
    for (size_t i = blocks_before(begin); i < blocks_before(end); ++i) {
      squares[i] = block(i * kBlock, std::min(kBlock, count - i * kBlock));
    }
  });
  Squares sum;
  for (const Squares& each : squares) {
    sum.of_values += each.of_values;
    sum.of_updates += each.of_updates;
  }
  return sum;
}

// Limits `value` to what T can hold: infinity times an element of 0 would be NaN.
template <typename T>
T Finite(double value) {
  return static_cast<T>(std::min<double>(value, std::numeric_limits<T>::max()));
}

template <typename T>
struct LarsFactors {
  LarsFactors(const LarsCoefficients& c, double ratio)
      : rate(static_cast<T>(c.learning_rate)),
        momentum(static_cast<T>(c.momentum)),
        decay(static_cast<T>(c.weight_decay)),
        ratio(Finite<T>(ratio)) {}
  const T rate, momentum, decay, ratio;
};

template <typename T>
TUTTI_INLINE void Descend(T* __restrict values, T* __restrict velocities,
                          const T* __restrict gradients, size_t count, const LarsFactors<T>& f) {
  for (size_t i = 0; i < count; ++i) {
    const T velocity = f.momentum * velocities[i] + f.ratio * (gradients[i] + f.decay * values[i]);
    velocities[i] = velocity;
    values[i] -= f.rate * velocity;
  }
}

template <typename T>
struct LambFactors {
  LambFactors(const AdamCoefficients& c, int64_t t)
      : beta1(static_cast<T>(c.beta1)),
        beta2(static_cast<T>(c.beta2)),
        of_gradient(static_cast<T>(1 - c.beta1)),
        of_square(static_cast<T>(1 - c.beta2)),
        mean(static_cast<T>(1 / (1 - std::pow(c.beta1, t)))),
        root(static_cast<T>(1 / std::sqrt(1 - std::pow(c.beta2, t)))),
        epsilon(static_cast<T>(c.epsilon)),
        decay(static_cast<T>(c.weight_decay)) {}
  const T beta1, beta2, of_gradient, of_square, mean, root, epsilon, decay;
};

// u of lamb.h's formula.
template <typename T>
TUTTI_INLINE T UpdateOf(T value, T first, T second, const LambFactors<T>& f) {
  return f.mean * first / (std::sqrt(second) * f.root + f.epsilon) + f.decay * value;
}

// The moments of at most kBlock elements, and what the ratio is made of.
template <typename T>
TUTTI_INLINE Squares Accumulate(const T* __restrict values, T* __restrict first,
                                T* __restrict second, const T* __restrict gradients, size_t count,
                                const LambFactors<T>& f) {
  T updates[kBlock];
  for (size_t i = 0; i < count; ++i) {
    const T gradient = gradients[i];
    first[i] = f.beta1 * first[i] + f.of_gradient * gradient;
    second[i] = f.beta2 * second[i] + f.of_square * gradient * gradient;
    updates[i] = UpdateOf(values[i], first[i], second[i], f);
  }
  return {SumOfSquares(values, count), SumOfSquares(updates, count)};
}

template <typename T>
TUTTI_INLINE void Descend(T* __restrict values, const T* __restrict first,
                          const T* __restrict second, size_t count, const LambFactors<T>& f,
                          T rate) {
  for (size_t i = 0; i < count; ++i) {
    values[i] -= rate * UpdateOf(values[i], first[i], second[i], f);
  }
}

template <typename T>
void Lars(T* values, T* velocities, const T* gradients, size_t count, const LarsCoefficients& c,
          int threads) {
  const Squares squares = SumOverBlocks(count, threads, [&](size_t begin, size_t size) {
    return base::Vectorised([&]() TUTTI_INLINE_BODY {
      return Squares{SumOfSquares(values + begin, size), SumOfSquares(gradients + begin, size)};
    });
  });
  const double value = std::sqrt(squares.of_values), gradient = std::sqrt(squares.of_updates);
  const bool is_scaled = value > 0 && gradient > 0;
  const LarsFactors<T> factors(
      c, is_scaled ? c.trust * value / (gradient + c.weight_decay * value) : 1);
  ParallelFor(count, threads, [&](size_t begin, size_t end) {
    base::Vectorised([&]() TUTTI_INLINE_BODY {
      Descend(values + begin, velocities + begin, gradients + begin, end - begin, factors);
    });
  });
}

template <typename T>
void Lamb(T* values, T* first, T* second, const T* gradients, size_t count,
          const AdamCoefficients& c, int64_t t, int threads) {
  const LambFactors<T> factors(c, t);
  const Squares squares = SumOverBlocks(count, threads, [&](size_t begin, size_t size) {
    return base::Vectorised([&]() TUTTI_INLINE_BODY {
      return Accumulate(values + begin, first + begin, second + begin, gradients + begin, size,
                        factors);
    });
  });
  const bool is_scaled = squares.of_values > 0 && squares.of_updates > 0;
  const double ratio = is_scaled ? std::sqrt(squares.of_values / squares.of_updates) : 1;
  const T rate = Finite<T>(c.learning_rate * ratio);
  ParallelFor(count, threads, [&](size_t begin, size_t end) {
    base::Vectorised([&]() TUTTI_INLINE_BODY {
      Descend(values + begin, first + begin, second + begin, end - begin, factors, rate);
    });
  });
}

}  // namespace

void LarsUpdate(float* values, float* velocities, const float* gradients, size_t count,
                const LarsCoefficients& coefficients, int threads) {
  Lars(values, velocities, gradients, count, coefficients, threads);
}

void LarsUpdate(double* values, double* velocities, const double* gradients, size_t count,
                const LarsCoefficients& coefficients, int threads) {
  Lars(values, velocities, gradients, count, coefficients, threads);
}

void LambUpdate(float* values, float* first, float* second, const float* gradients, size_t count,
                const AdamCoefficients& coefficients, int64_t t, int threads) {
  Lamb(values, first, second, gradients, count, coefficients, t, threads);
}

void LambUpdate(double* values, double* first, double* second, const double* gradients,
                size_t count, const AdamCoefficients& coefficients, int64_t t, int threads) {
  Lamb(values, first, second, gradients, count, coefficients, t, threads);
}

}  // namespace tutti::train
