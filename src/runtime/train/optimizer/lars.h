// LARS, for large batches: momentum with a rate for each layer (You, Gitman & Ginsburg 2017, "Large
// batch training of convolutional networks", arXiv:1708.03888). Formula: layerwise_kernel.h; which
// parameters are layers: layers.h.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/train/optimizer/layers.h"
#include "runtime/train/optimizer/layerwise_kernel.h"
#include "runtime/train/optimizer/on_gpu.h"
#include "runtime/train/optimizer/optimizer.h"

namespace tutti::train {

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

}  // namespace tutti::train
