#include "platform/flow/parzen.h"

#include <algorithm>
#include <cmath>

#include "platform/flow/distribution.h"
#include "platform/flow/random.h"

namespace tutti::flow {
namespace {

constexpr int kDraws = 24;
constexpr double kRootOfTwoPi = 2.5066282746310002;

double Cdf(double x) { return 0.5 * std::erfc(-x / 1.4142135623730951); }

// Chooses the next value of a parameter whose values have no order. A value's weight is how often
// it was seen, plus 1.
double ChoiceNext(const ParzenDimension& seen, uint64_t seed, uint64_t number, uint64_t dimension) {
  const auto count = [&](const std::vector<double>& quantiles) {
    std::vector<double> weights(seen.choices, 1.0);
    for (const double u : quantiles) {
      const auto index = static_cast<int64_t>(u * static_cast<double>(seen.choices));
      weights[std::clamp<int64_t>(index, 0, seen.choices - 1)] += 1;
    }
    return weights;
  };
  const std::vector<double> good = count(seen.good), rest = count(seen.rest);
  double total = 0;
  for (const double weight : good) total += weight;
  int64_t best = 0;
  double best_ratio = -1;
  for (int draw = 0; draw < kDraws; ++draw) {
    double left = UniformAt(seed, number, dimension, draw) * total;
    int64_t index = 0;
    while (index + 1 < seen.choices && left >= good[index]) left -= good[index++];
    if (good[index] / rest[index] > best_ratio) {
      best_ratio = good[index] / rest[index];
      best = index;
    }
  }
  return (static_cast<double>(best) + 0.5) / static_cast<double>(seen.choices);
}

}  // namespace

ParzenDensity::ParzenDensity(std::vector<double> centres) {
  std::sort(centres.begin(), centres.end());
  const size_t n = centres.size();
  kernels_.reserve(n);
  // Few observations say little, however near to each other they lie (hyperopt's rule).
  const double narrowest = 1.0 / static_cast<double>(std::min<size_t>(100, n + 1));
  for (size_t i = 0; i < n; ++i) {
    // The farther of its neighbours, as in the paper.
    const double left = centres[i] - (i == 0 ? 0 : centres[i - 1]);
    const double right = (i + 1 == n ? 1 : centres[i + 1]) - centres[i];
    Kernel kernel{.centre = centres[i], .width = std::clamp(std::max(left, right), narrowest, 1.0)};
    kernel.below = Cdf(-kernel.centre / kernel.width);
    kernel.mass = Cdf((1 - kernel.centre) / kernel.width) - kernel.below;
    kernel.peak = 1 / (kRootOfTwoPi * kernel.width * kernel.mass);
    kernels_.push_back(kernel);
  }
}

double ParzenDensity::At(double u) const {
  double sum = 1;
  for (const Kernel& kernel : kernels_) {
    const double z = (u - kernel.centre) / kernel.width;
    sum += std::exp(-z * z / 2) * kernel.peak;
  }
  return sum / static_cast<double>(kernels_.size() + 1);
}

double ParzenDensity::Draw(double pick, double v) const {
  const auto chosen = static_cast<size_t>(pick * static_cast<double>(kernels_.size() + 1));
  if (chosen >= kernels_.size()) return v;
  const Kernel& kernel = kernels_[chosen];
  const double u = kernel.centre + kernel.width * NormalQuantile(kernel.below + v * kernel.mass);
  return std::clamp(u, 1e-9, 1 - 1e-9);
}

double Parzen::Next(uint64_t seed, uint64_t number, uint64_t dimension) const {
  if (seen_.choices > 0) return ChoiceNext(seen_, seed, number, dimension);
  double best = 0.5, best_ratio = -1;
  for (int draw = 0; draw < kDraws; ++draw) {
    const double u = good_.Draw(UniformAt(seed, number, dimension, 2 * draw),
                                UniformAt(seed, number, dimension, 2 * draw + 1));
    const double ratio = good_.At(u) / rest_.At(u);
    if (ratio > best_ratio) {
      best_ratio = ratio;
      best = u;
    }
  }
  return best;
}

}  // namespace tutti::flow
