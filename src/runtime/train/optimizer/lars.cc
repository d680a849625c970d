#include "runtime/train/optimizer/lars.h"

#include <utility>

namespace tutti::train {

Lars::Lars(const Buckets& buckets, const LarsCoefficients& coefficients)
    : Lars(buckets, coefficients, LayersOf(buckets)) {}

Lars::Lars(const Buckets& buckets, const LarsCoefficients& coefficients, std::vector<Layers> layers)
    : Momentum(buckets,
               {.momentum = coefficients.momentum, .weight_decay = coefficients.weight_decay},
               ParameterRangesOf(layers)),
      trust_(coefficients.trust),
      layers_(std::move(layers)) {}

template <typename T>
void Lars::UpdateLayer(const Memory<T>& m, int threads) {
  const SgdCoefficients& c = coefficients();
  LarsUpdate(m.values, m.velocities, m.gradients, m.count,
             {c.learning_rate, c.momentum, c.weight_decay, trust_}, threads);
}

void Lars::UpdateOnGpu(device::Cuda& kernels, const device::UpdateTensors& tensors,
                       const torch::Tensor& velocities) {
  kernels.Lars({tensors, velocities, coefficients().momentum, trust_});
}

Momentum::Updated Lars::UpdateByLibtorch(size_t i, const torch::Tensor& velocities) {
  const SgdCoefficients& c = coefficients();
  Layers& layers = layers_[i];
  const torch::Tensor &values = bucket(i).values(), gradients = bucket(i).gradients();
  const torch::Tensor value = layers.Norms(values), gradient = layers.Norms(gradients);
  const torch::Tensor ratios =
      layers.Ratios(trust_ * value / (gradient + c.weight_decay * value), value, gradient);
  const torch::Tensor decayed = gradients + layers.Spread(layers.Decays(c.weight_decay)) * values;
  const torch::Tensor next = velocities.mul(c.momentum).addcmul_(layers.Spread(ratios), decayed);
  return {values.sub(next, /*alpha=*/c.learning_rate), next};
}

}  // namespace tutti::train
