// Momentum is the base of the optimizers that keep a velocity of the gradients: SGD (sgd.h) and
// LARS (lars.h).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device/kernels/cuda.h"
#include "runtime/parallel/optimizer.h"
#include "runtime/train/optimizer/gpu_kernels.h"
#include "runtime/train/optimizer/kernels/sgd_kernel.h"
#include "runtime/train/optimizer/parameter_range.h"

namespace tutti::train {

class Momentum : public parallel::Optimizer {
 public:
  ~Momentum() override;
  void Step(double learning_rate) final;
  parallel::State state() final;  // "momentum.<name>"

 protected:
  // `count` elements of a bucket's flat memory that weight decay is for.
  template <typename T>
  struct Memory {
    T *values, *velocities;
    const T* gradients;
    size_t count;
  };
  // What a step makes of a bucket, [size], in new memory.
  struct Updated {
    torch::Tensor values, velocities;
  };

  // `buckets` must outlive the optimizer; the coefficients' learning rate is not used.
  Momentum(const Buckets& buckets, const SgdCoefficients& coefficients,
           std::vector<std::vector<ParameterRange>> ranges);

  virtual void Update(const Memory<float>& memory, int threads) = 0;
  virtual void Update(const Memory<double>& memory, int threads) = 0;
  virtual void UpdateOnGpu(device::Cuda& kernels, const device::UpdateTensors& tensors,
                           const torch::Tensor& velocities) = 0;
  virtual Updated UpdateByLibtorch(size_t bucket, const torch::Tensor& velocities) = 0;

  parallel::Bucket& bucket(size_t i) { return *buckets_[i]; }
  const SgdCoefficients& coefficients() const { return coefficients_; }  // with the step's rate
  const std::vector<ParameterRange>& ranges(size_t bucket) const { return ranges_[bucket]; }

 private:
  template <typename T>
  void StepOnCpu(size_t bucket);
  void StepByLibtorch(size_t bucket);

  const Buckets& buckets_;
  SgdCoefficients coefficients_;
  std::vector<torch::Tensor> velocities_;                  // one per bucket, [size]
  const std::vector<std::vector<ParameterRange>> ranges_;  // per bucket
  const std::unique_ptr<GpuKernels> gpu_;
};

}  // namespace tutti::train
