#include "platform/flow/parzen.h"

#include <algorithm>
#include <cmath>

#include "platform/flow/distribution.h"
#include "platform/flow/random.h"

namespace tutti::flow {
namespace {

constexpr int kDraws = 24;

double Cdf(double x) { return 0.5 * std::erfc(-x / 1.4142135623730951); }

// Gaussian kernels on the observations, cut off at the ends of the interval, and one of weight 1
// that is flat: what nobody has tried stays possible.
class Density {
 public:
  explicit Density(std::vector<double> centres) : centres_(std::move(centres)) {
    std::sort(centres_.begin(), centres_.end());
    const size_t n = centres_.size();
    // Few observations say little, however near to each other they lie (hyperopt's rule).
    const double narrowest = 1.0 / static_cast<double>(std::min<size_t>(100, n + 1));
    for (size_t i = 0; i < n; ++i) {
      // The farther of its neighbours, as in the paper.
      const double left = centres_[i] - (i == 0 ? 0 : centres_[i - 1]);
      const double right = (i + 1 == n ? 1 : centres_[i + 1]) - centres_[i];
      widths_.push_back(std::clamp(std::max(left, right), narrowest, 1.0));
    }
  }

  double At(double u) const {
    double sum = 1;
    for (size_t i = 0; i < centres_.size(); ++i) {
      const double z = (u - centres_[i]) / widths_[i];
      sum += std::exp(-z * z / 2) / (2.5066282746310002 * widths_[i] * Mass(i));
    }
    return sum / static_cast<double>(centres_.size() + 1);
  }

  // The quantile `v` of the kernel that `pick` in (0, 1) chooses.
  double Draw(double pick, double v) const {
    const auto kernel = static_cast<size_t>(pick * static_cast<double>(centres_.size() + 1));
    if (kernel >= centres_.size()) return v;
    const double low = Cdf(-centres_[kernel] / widths_[kernel]);
    const double u = centres_[kernel] + widths_[kernel] * NormalQuantile(low + v * Mass(kernel));
    return std::clamp(u, 1e-9, 1 - 1e-9);
  }

 private:
  double Mass(size_t i) const {
    return Cdf((1 - centres_[i]) / widths_[i]) - Cdf(-centres_[i] / widths_[i]);
  }

  std::vector<double> centres_, widths_;
};

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

double ParzenNext(const ParzenDimension& seen, uint64_t seed, uint64_t number, uint64_t dimension) {
  if (seen.choices > 0) return ChoiceNext(seen, seed, number, dimension);
  const Density good(seen.good), rest(seen.rest);
  double best = 0.5, best_ratio = -1;
  for (int draw = 0; draw < kDraws; ++draw) {
    const double u = good.Draw(UniformAt(seed, number, dimension, 2 * draw),
                               UniformAt(seed, number, dimension, 2 * draw + 1));
    const double ratio = good.At(u) / rest.At(u);
    if (ratio > best_ratio) {
      best_ratio = ratio;
      best = u;
    }
  }
  return best;
}

}  // namespace tutti::flow
