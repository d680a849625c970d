// Optimizers for large batches, with a step for each layer that is in proportion to its weights:
// LARS (You, Gitman & Ginsburg 2017, arXiv:1708.03888) and LAMB (You et al. 2020,
// arXiv:1904.00962).
//
// A layer is a parameter of two dimensions and more. The others, biases and batch-norms, are spared
// (Decay::kWeights): their ratio is 1, and they do not decay. It is also 1 where the norm of the
// weights or of what they are moved by is 0.
//
// Formulas: layerwise_kernel.h. Nothing waits for a norm. Thread-compatible.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/train/optimizer/layerwise_kernel.h"
#include "runtime/train/optimizer/optimizer.h"

namespace tutti::train {

// The layers of a bucket, each a stretch that decays; what is spared lies in stretches between
// them.
class Layers {
 public:
  explicit Layers(const parallel::Bucket& bucket);

  const std::vector<Stretch>& stretches() const { return stretches_; }
  // Of a tensor [size]: one a stretch, in fp64, where the tensor is.
  torch::Tensor Norms(const torch::Tensor& flat) const;
  // Those of the layers; 1 for what is spared, and where one of the two norms, given as Norms gives
  // them, is 0.
  torch::Tensor Ratios(const torch::Tensor& ratios, const torch::Tensor& values,
                       const torch::Tensor& updates) const;
  // `decay` for layers, 0 for what is spared; one a stretch.
  torch::Tensor Decays(double decay) const;
  // From one a stretch to one an element, [size], in the bucket's type. The first call looks up,
  // for all others, which stretch each element is of.
  torch::Tensor Spread(const torch::Tensor& each);

 private:
  torch::ScalarType type_;
  std::vector<Stretch> stretches_;
  std::vector<int64_t> sizes_;
  torch::Tensor are_layers_;  // [stretches], where the bucket is
  torch::Tensor stretch_of_;  // [size] int32: each element's
};

class Lars final : public Optimizer {
 public:
  // `buckets` must outlive the optimizer; the coefficients' learning rate is not used.
  Lars(const Buckets& buckets, const LarsCoefficients& coefficients);
  ~Lars() override;

  void Step(double learning_rate) override;
  std::map<std::string, torch::Tensor> State() override;  // "momentum.<name>"
  std::vector<torch::Tensor> FlatState() override { return velocities_; }

 private:
  template <typename T>
  void StepOnCpu(size_t bucket);
  void StepByLibtorch(size_t bucket);

  const Buckets& buckets_;
  LarsCoefficients coefficients_;
  std::vector<torch::Tensor> velocities_;  // one per bucket, [size]
  std::vector<Layers> layers_;             // likewise
  const std::unique_ptr<OnGpu> gpu_;
};

class Lamb final : public WithMoments {
 public:
  Lamb(const Buckets& buckets, const AdamCoefficients& coefficients);

 private:
  Lamb(const Buckets& buckets, const AdamCoefficients& coefficients, std::vector<Layers> layers);
  template <typename T>
  void Update(size_t bucket, int64_t t);
  void UpdateFloats(size_t bucket, int64_t t) override { Update<float>(bucket, t); }
  void UpdateDoubles(size_t bucket, int64_t t) override { Update<double>(bucket, t); }
  void UpdateOnGpu(device::Cuda& kernels, const device::AdamTensors& tensors) override {
    kernels.Lamb(tensors);
  }
  torch::Tensor Updated(size_t bucket, const torch::Tensor& first, const torch::Tensor& size,
                        int64_t t) override;

  std::vector<Layers> layers_;  // one per bucket
};

}  // namespace tutti::train
