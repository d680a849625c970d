// Sgd is stochastic gradient descent with momentum (Sutskever et al. 2013, "On the importance of
// initialization and momentum in deep learning"), in torch::optim::SGD's form without dampening.
// With g the gradient, p the value and v the velocity (torch's "momentum buffer", zero at first):
//   d = g + weight_decay p;  v = momentum v + d
//   p -= learning_rate (nesterov ? d + momentum v : v)
#pragma once

#include "runtime/train/optimizer/momentum.h"

namespace tutti::train {

class Sgd final : public Momentum {
 public:
  Sgd(const Buckets& buckets, const SgdCoefficients& coefficients, Decay decay = Decay::kAll);

 private:
  void Update(const Memory<float>& memory, int threads) override;
  void Update(const Memory<double>& memory, int threads) override;
  void UpdateOnGpu(device::Cuda& kernels, const device::UpdateTensors& tensors,
                   const torch::Tensor& velocities) override;
  Updated UpdateByLibtorch(size_t bucket, const torch::Tensor& velocities) override;
};

}  // namespace tutti::train
