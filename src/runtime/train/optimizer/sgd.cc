#include "runtime/train/optimizer/sgd.h"

namespace tutti::train {

Sgd::Sgd(const Buckets& buckets, const SgdCoefficients& coefficients, Decay decay)
    : Momentum(buckets, coefficients, ParameterRangesOf(buckets, decay)) {}

void Sgd::Update(const Memory<float>& m, int threads) {
  SgdUpdate(m.values, m.velocities, m.gradients, m.count, coefficients(), threads);
}

void Sgd::Update(const Memory<double>& m, int threads) {
  SgdUpdate(m.values, m.velocities, m.gradients, m.count, coefficients(), threads);
}

void Sgd::UpdateOnGpu(device::Cuda& kernels, const device::UpdateTensors& tensors,
                      const torch::Tensor& velocities) {
  kernels.Sgd({tensors, velocities, coefficients().momentum, coefficients().nesterov});
}

Momentum::Updated Sgd::UpdateByLibtorch(size_t i, const torch::Tensor& velocities) {
  const SgdCoefficients& c = coefficients();
  const torch::Tensor gradient = bucket(i).gradients().clone();
  for (const ParameterRange& range : ranges(i)) {
    if (!range.decays) continue;
    gradient.slice(0, range.begin, range.end)
        .add_(bucket(i).values().slice(0, range.begin, range.end), /*alpha=*/c.weight_decay);
  }
  const torch::Tensor next = velocities.mul(c.momentum).add_(gradient);
  const torch::Tensor step = c.nesterov ? gradient.add(next, /*alpha=*/c.momentum) : next;
  return {bucket(i).values().sub(step, /*alpha=*/c.learning_rate), next};
}

}  // namespace tutti::train
