// Updates the parameters in a strategy's buckets from the gradients there. Thread-compatible.
#pragma once

#include <torch/torch.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/parallel/bucket.h"
#include "runtime/train/optimizer/sgd_kernel.h"

namespace tutti::train {

class Optimizer {
 public:
  using Buckets = std::vector<std::unique_ptr<parallel::Bucket>>;

  virtual ~Optimizer() = default;
  virtual void Step(double learning_rate) = 0;
  // Its memory by name ("momentum.layer1.0.conv1.weight"), as views: what a checkpoint keeps, and
  // through which it is restored.
  virtual std::map<std::string, torch::Tensor> State() = 0;
  // The same memory as few flat tensors: what is sent to another rank.
  virtual std::vector<torch::Tensor> FlatState() = 0;
};

// Sutskever et al. 2013, in torch::optim::SGD's form without dampening. One pass over each bucket.
class Sgd final : public Optimizer {
 public:
  // `buckets` must outlive the optimizer; the coefficients' learning rate is not used.
  Sgd(const Buckets& buckets, const SgdCoefficients& coefficients);

  void Step(double learning_rate) override;
  std::map<std::string, torch::Tensor> State() override;
  std::vector<torch::Tensor> FlatState() override { return velocities_; }

 private:
  void StepOnGpu();

  const Buckets& buckets_;
  SgdCoefficients coefficients_;
  std::vector<torch::Tensor> velocities_;  // one per bucket, [size]
  torch::Tensor rate_;                     // the learning rate on the GPU; undefined without one
};

}  // namespace tutti::train
