// AdamW updates parameters by adaptive moments with decoupled weight decay (Loshchilov & Hutter
// 2019, "Decoupled weight decay regularization", arXiv:1711.05101), in torch::optim::AdamW's form.
// With g the gradient, p the value, m and v the moments (zero at first), at the t-th update:
//   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g g
//   p = (1 - learning_rate weight_decay) p
//       - learning_rate (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)
#pragma once

#include "runtime/train/optimizer/adam_moments.h"

namespace tutti::train {

class AdamW final : public AdamMoments {
 public:
  AdamW(const Buckets& buckets, const AdamCoefficients& coefficients, Decay decay = Decay::kAll);

 private:
  void Update(const Memory<float>& memory, int64_t t, int threads) override;
  void Update(const Memory<double>& memory, int64_t t, int threads) override;
  void UpdateOnGpu(device::Cuda& kernels, const device::AdamTensors& tensors) override {
    kernels.AdamW(tensors);
  }
  torch::Tensor Updated(size_t bucket, const torch::Tensor& first, const torch::Tensor& size,
                        int64_t t) override;
};

}  // namespace tutti::train
