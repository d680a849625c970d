// Stochastic gradient descent with momentum (Sutskever et al. 2013, "On the importance of
// initialization and momentum in deep learning"), in torch::optim::SGD's form without dampening.
// Formula: sgd_kernel.h.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/train/optimizer/on_gpu.h"
#include "runtime/train/optimizer/optimizer.h"
#include "runtime/train/optimizer/sgd_kernel.h"
#include "runtime/train/optimizer/stretches.h"

namespace tutti::train {

class Sgd final : public Optimizer {
 public:
  // `buckets` must outlive the optimizer; the coefficients' learning rate is not used.
  Sgd(const Buckets& buckets, const SgdCoefficients& coefficients, Decay decay = Decay::kAll);
  ~Sgd() override;

  void Step(double learning_rate) override;
  std::map<std::string, torch::Tensor> State() override;
  std::vector<torch::Tensor> FlatState() override { return velocities_; }

 private:
  template <typename T>
  void StepOnCpu(size_t bucket);
  void StepByLibtorch(size_t bucket);

  const Buckets& buckets_;
  SgdCoefficients coefficients_;
  std::vector<torch::Tensor> velocities_;        // one per bucket, [size]
  std::vector<std::vector<Stretch>> stretches_;  // per bucket
  const std::unique_ptr<OnGpu> gpu_;
};

}  // namespace tutti::train
