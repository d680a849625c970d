#include "runtime/train/optimizer/lamb.h"

#include <cmath>
#include <utility>

#include "runtime/train/optimizer/kernels/layerwise_kernel.h"

namespace tutti::train {

Lamb::Lamb(const Buckets& buckets, const AdamCoefficients& coefficients)
    : Lamb(buckets, coefficients, LayersOf(buckets)) {}

Lamb::Lamb(const Buckets& buckets, const AdamCoefficients& coefficients, std::vector<Layers> layers)
    : AdamMoments(buckets, coefficients, ParameterRangesOf(layers)), layers_(std::move(layers)) {}

void Lamb::Update(const Memory<float>& m, int64_t t, int threads) {
  LambUpdate(m.values, m.first, m.second, m.gradients, m.count, coefficients(), t, threads);
}

void Lamb::Update(const Memory<double>& m, int64_t t, int threads) {
  LambUpdate(m.values, m.first, m.second, m.gradients, m.count, coefficients(), t, threads);
}

torch::Tensor Lamb::Updated(size_t i, const torch::Tensor& first, const torch::Tensor& size,
                            int64_t t) {
  const AdamCoefficients& c = coefficients();
  Layers& layers = layers_[i];
  const torch::Tensor& old = bucket(i).values();
  const torch::Tensor update = layers.Spread(layers.Decays(c.weight_decay))
                                   .mul_(old)
                                   .addcdiv_(first, size, /*value=*/1 / (1 - std::pow(c.beta1, t)));
  const torch::Tensor value = layers.Norms(old), length = layers.Norms(update);
  const torch::Tensor ratios = layers.Ratios(value / length, value, length);
  return old.addcmul(layers.Spread(ratios), update, /*value=*/-c.learning_rate);
}

}  // namespace tutti::train
