// Updates the parameters in a strategy's buckets from the gradients there. Thread-compatible.
#pragma once

#include <torch/types.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device/cuda.h"
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
  virtual void SwapWeights() {}
  // Its memory by name ("momentum.layer1.0.conv1.weight"), as views: what a checkpoint keeps, and
  // through which it is restored.
  virtual std::map<std::string, torch::Tensor> State() = 0;
  // The same memory as few flat tensors: what is sent to another rank.
  virtual std::vector<torch::Tensor> FlatState() = 0;
};

// Adds the parameters' parts of `flat`, a tensor [size] for each bucket, to a State() as
// "<prefix><name>".
void AddByName(const std::string& prefix, const Optimizer::Buckets& buckets,
               const std::vector<torch::Tensor>& flat, std::map<std::string, torch::Tensor>& state);

// What weight decay is for: all parameters, or those of two dimensions and more alone, so neither
// biases nor batch-norms (Jia et al. 2018, section 3.2).
enum class Decay { kAll, kWeights };

// Of a bucket, in elements: neighbours that are updated alike.
struct Stretch {
  int64_t begin = 0, end = 0;
  bool decays = true;
};
std::vector<Stretch> StretchesOf(const parallel::Bucket& bucket, Decay decay);

// Of each bucket.
std::vector<std::vector<Stretch>> StretchesOf(const Optimizer::Buckets& buckets, Decay decay);

// On a GPU these optimizers are kernels (on_gpu.h). Without those, and wherever else a bucket may
// hold what is not finite, they are libtorch's operators, in several passes over memory.
class OnGpu;

// Sutskever et al. 2013, in torch::optim::SGD's form without dampening. One pass over each bucket.
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

// What optimizers share that keep the moments of the gradients: AdamW, and LAMB (layerwise.h).
class WithMoments : public Optimizer {
 public:
  ~WithMoments() override;
  void Step(double learning_rate) final;
  // "exp_avg.<name>", "exp_avg_sq.<name>" and "updates", the number of them.
  std::map<std::string, torch::Tensor> State() final;
  std::vector<torch::Tensor> FlatState() final;

 protected:
  // Pointers into the flat memory of a bucket, from an element on.
  template <typename T>
  struct Memory {
    T *values, *first, *second;
    const T* gradients;
  };

  // `buckets` must outlive the optimizer; the coefficients' learning rate is not used.
  WithMoments(const Buckets& buckets, const AdamCoefficients& coefficients,
              std::vector<std::vector<Stretch>> stretches);

  virtual void UpdateFloats(size_t bucket, int64_t t) = 0;
  virtual void UpdateDoubles(size_t bucket, int64_t t) = 0;
  virtual void UpdateOnGpu(device::Cuda& kernels, const device::AdamTensors& tensors) = 0;
  // A bucket's values after its t-th update, [size], in new memory. `first`: the new moment, not
  // yet corrected; `size`: what it is divided by, sqrt(v / (1 - beta2^t)) + epsilon.
  virtual torch::Tensor Updated(size_t bucket, const torch::Tensor& first,
                                const torch::Tensor& size, int64_t t) = 0;

  template <typename T>
  Memory<T> MemoryOf(size_t bucket, int64_t begin) {
    parallel::Bucket& b = *buckets_[bucket];
    return {b.values().mutable_data_ptr<T>() + begin, first_[bucket].mutable_data_ptr<T>() + begin,
            second_[bucket].mutable_data_ptr<T>() + begin,
            b.gradients().template const_data_ptr<T>() + begin};
  }
  parallel::Bucket& bucket(size_t i) { return *buckets_[i]; }
  const AdamCoefficients& coefficients() const { return coefficients_; }  // with the step's rate
  const std::vector<Stretch>& stretches(size_t bucket) const { return stretches_[bucket]; }

 private:
  void StepByLibtorch(size_t bucket, int64_t t);

  const Buckets& buckets_;
  AdamCoefficients coefficients_;
  torch::Tensor updates_;                              // [1] of int64, on the CPU
  std::vector<torch::Tensor> first_, second_;          // moments, one per bucket, [size]
  const std::vector<std::vector<Stretch>> stretches_;  // per bucket
  const std::unique_ptr<OnGpu> gpu_;
};

// Loshchilov & Hutter 2019, in torch::optim::AdamW's form. One pass over each bucket.
class AdamW final : public WithMoments {
 public:
  AdamW(const Buckets& buckets, const AdamCoefficients& coefficients, Decay decay = Decay::kAll);

 private:
  template <typename T>
  void Update(size_t bucket, int64_t t);
  void UpdateFloats(size_t bucket, int64_t t) override { Update<float>(bucket, t); }
  void UpdateDoubles(size_t bucket, int64_t t) override { Update<double>(bucket, t); }
  void UpdateOnGpu(device::Cuda& kernels, const device::AdamTensors& tensors) override {
    kernels.AdamW(tensors);
  }
  torch::Tensor Updated(size_t bucket, const torch::Tensor& first, const torch::Tensor& size,
                        int64_t t) override;
};

}  // namespace tutti::train
