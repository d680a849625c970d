// AdamMoments is the base of the optimizers that keep the first two moments of the gradients: AdamW
// (adamw.h) and LAMB (lamb.h).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device/kernels/cuda.h"
#include "runtime/parallel/optimizer.h"
#include "runtime/train/optimizer/gpu_kernels.h"
#include "runtime/train/optimizer/kernels/adam_kernel.h"
#include "runtime/train/optimizer/parameter_range.h"

namespace tutti::train {

class AdamMoments : public parallel::Optimizer {
 public:
  ~AdamMoments() override;
  void Step(double learning_rate) final;
  // Returns "exp_avg.<name>", "exp_avg_sq.<name>" and "updates", the number of them.
  parallel::State state() final;

 protected:
  // `count` elements of a bucket's flat memory that weight decay is for.
  template <typename T>
  struct Memory {
    T *values, *first, *second;
    const T* gradients;
    size_t count;
  };

  // `buckets` must outlive the optimizer; the coefficients' learning rate is not used.
  AdamMoments(const Buckets& buckets, const AdamCoefficients& coefficients,
              std::vector<std::vector<ParameterRange>> ranges);

  virtual void Update(const Memory<float>& memory, int64_t t, int threads) = 0;
  virtual void Update(const Memory<double>& memory, int64_t t, int threads) = 0;
  virtual void UpdateOnGpu(device::Cuda& kernels, const device::AdamTensors& tensors) = 0;
  // Returns a bucket's values after its t-th update, [size], in new memory. `first`: the new
  // moment, not yet corrected; `size`: what it is divided by, sqrt(v / (1 - beta2^t)) + epsilon.
  virtual torch::Tensor Updated(size_t bucket, const torch::Tensor& first,
                                const torch::Tensor& size, int64_t t) = 0;

  parallel::Bucket& bucket(size_t i) { return *buckets_[i]; }
  const AdamCoefficients& coefficients() const { return coefficients_; }  // with the step's rate
  const std::vector<ParameterRange>& ranges(size_t bucket) const { return ranges_[bucket]; }

 private:
  template <typename T>
  void StepOnCpu(size_t bucket, int64_t t);
  void StepByLibtorch(size_t bucket, int64_t t);

  const Buckets& buckets_;
  AdamCoefficients coefficients_;
  torch::Tensor updates_;                                  // [1] of int64, on the CPU
  std::vector<torch::Tensor> first_, second_;              // moments, one per bucket, [size]
  const std::vector<std::vector<ParameterRange>> ranges_;  // per bucket
  const std::unique_ptr<GpuKernels> gpu_;
};

}  // namespace tutti::train
