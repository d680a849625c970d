// Updates the parameters in a strategy's buckets from the gradients there. Thread-compatible.
#pragma once

#include <torch/types.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/parallel/bucket.h"
#include "runtime/train/optimizer/adam_kernel.h"
#include "runtime/train/optimizer/sgd_kernel.h"

namespace tutti::train {

class Optimizer {
 public:
  using Buckets = std::vector<std::unique_ptr<parallel::Bucket>>;

  virtual ~Optimizer() = default;
  virtual void Step(double learning_rate) = 0;
  // Puts what the finished model has in the place of what is trained, if that differs (averages:
  // weight_average.h); again: back.
  virtual void Exchange() {}
  // Its memory by name ("momentum.layer1.0.conv1.weight"), as views: what a checkpoint keeps, and
  // through which it is restored.
  virtual std::map<std::string, torch::Tensor> State() = 0;
  // The same memory as few flat tensors: what is sent to another rank.
  virtual std::vector<torch::Tensor> FlatState() = 0;
};

// What weight decay is for: all parameters, or those of two dimensions and more alone, so neither
// biases nor batch-norms (Jia et al. 2018, section 3.2).
enum class Decay { kAll, kWeights };

// Of a bucket, in elements: neighbours that are updated alike.
struct Stretch {
  int64_t begin = 0, end = 0;
  bool decays = true;
};
std::vector<Stretch> StretchesOf(const parallel::Bucket& bucket, Decay decay);

// Sutskever et al. 2013, in torch::optim::SGD's form without dampening. One pass over each bucket.
class Sgd final : public Optimizer {
 public:
  // `buckets` must outlive the optimizer; the coefficients' learning rate is not used.
  Sgd(const Buckets& buckets, const SgdCoefficients& coefficients, Decay decay = Decay::kAll);

  void Step(double learning_rate) override;
  std::map<std::string, torch::Tensor> State() override;
  std::vector<torch::Tensor> FlatState() override { return velocities_; }

 private:
  template <typename T>
  void StepOnCpu(size_t bucket);
  void StepOnGpu();

  const Buckets& buckets_;
  SgdCoefficients coefficients_;
  std::vector<torch::Tensor> velocities_;                 // one per bucket, [size]
  std::vector<std::vector<Stretch>> stretches_;           // per bucket
  std::vector<torch::Tensor> spared_, spared_gradients_;  // that do not decay; for the GPU
  torch::Tensor rate_;  // the learning rate on the GPU; undefined without one
};

// Loshchilov & Hutter 2019, in torch::optim::AdamW's form. One pass over each bucket; on a GPU
// libtorch's, several.
class AdamW final : public Optimizer {
 public:
  // `buckets` must outlive the optimizer; the coefficients' learning rate is not used.
  AdamW(const Buckets& buckets, const AdamCoefficients& coefficients, Decay decay = Decay::kAll);

  void Step(double learning_rate) override;
  // "exp_avg.<name>", "exp_avg_sq.<name>" and "updates", the number of them.
  std::map<std::string, torch::Tensor> State() override;
  std::vector<torch::Tensor> FlatState() override;

 private:
  template <typename T>
  void StepOnCpu(size_t bucket, int64_t t);
  void StepByLibtorch(size_t bucket, int64_t t);

  const Buckets& buckets_;
  AdamCoefficients coefficients_;
  torch::Tensor updates_;                        // [1] of int64, on the CPU
  std::vector<torch::Tensor> first_, second_;    // moments, one per bucket, [size]
  std::vector<std::vector<Stretch>> stretches_;  // per bucket
};

}  // namespace tutti::train
