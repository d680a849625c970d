#include "runtime/train/optimizer/adamw.h"

#include <cmath>

namespace tutti::train {

AdamW::AdamW(const Buckets& buckets, const AdamCoefficients& coefficients, Decay decay)
    : AdamMoments(buckets, coefficients, ParameterRangesOf(buckets, decay)) {}

void AdamW::Update(const Memory<float>& m, int64_t t, int threads) {
  AdamUpdate(m.values, m.first, m.second, m.gradients, m.count, coefficients(), t, threads);
}

void AdamW::Update(const Memory<double>& m, int64_t t, int threads) {
  AdamUpdate(m.values, m.first, m.second, m.gradients, m.count, coefficients(), t, threads);
}

torch::Tensor AdamW::Updated(size_t i, const torch::Tensor& first, const torch::Tensor& size,
                             int64_t t) {
  const AdamCoefficients& c = coefficients();
  torch::Tensor values = bucket(i).values().clone();
  for (const ParameterRange& range : ranges(i)) {
    if (!range.decays) continue;
    values.slice(0, range.begin, range.end).mul_(1 - c.learning_rate * c.weight_decay);
  }
  return values.addcdiv_(first, size, /*value=*/-c.learning_rate / (1 - std::pow(c.beta1, t)));
}

}  // namespace tutti::train
