// LAMB is for large batches: it is AdamW with a step for each layer in proportion to its weights
// (You et al. 2020, "Large batch optimization for deep learning", arXiv:1904.00962). With m and v
// the moments as AdamW has them, p the values of a layer (bucket_layers.h says which parameters are
// one), at the t-th update:
//   u = (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon) + weight_decay p
//   p -= learning_rate r u, where r = |p| / |u|, or 1 where one of the two is 0
#pragma once

#include <vector>

#include "runtime/train/optimizer/adam_moments.h"
#include "runtime/train/optimizer/bucket_layers.h"

namespace tutti::train {

class Lamb final : public AdamMoments {
 public:
  Lamb(const Buckets& buckets, const AdamCoefficients& coefficients);

 private:
  Lamb(const Buckets& buckets, const AdamCoefficients& coefficients, std::vector<Layers> layers);
  void Update(const Memory<float>& memory, int64_t t, int threads) override;
  void Update(const Memory<double>& memory, int64_t t, int threads) override;
  void UpdateOnGpu(device::Cuda& kernels, const device::AdamTensors& tensors) override {
    kernels.Lamb(tensors);
  }
  torch::Tensor Updated(size_t bucket, const torch::Tensor& first, const torch::Tensor& size,
                        int64_t t) override;

  std::vector<Layers> layers_;  // one per bucket
};

}  // namespace tutti::train
