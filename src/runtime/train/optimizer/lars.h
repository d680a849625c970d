// LARS is for large batches: it is momentum with a rate for each layer (You, Gitman & Ginsburg
// 2017, "Large batch training of convolutional networks", arXiv:1708.03888). With g the gradients
// of a layer (bucket_layers.h says which parameters are one), p its values and v the velocities
// (zero at first):
//   r = trust |p| / (|g| + weight_decay |p|), or 1 where |p| or |g| is 0
//   v = momentum v + r (g + weight_decay p);  p -= learning_rate v
#pragma once

#include <vector>

#include "runtime/train/optimizer/bucket_layers.h"
#include "runtime/train/optimizer/kernels/layerwise_kernel.h"
#include "runtime/train/optimizer/momentum.h"

namespace tutti::train {

class Lars final : public Momentum {
 public:
  // `buckets` must outlive the optimizer; the coefficients' learning rate is not used.
  Lars(const Buckets& buckets, const LarsCoefficients& coefficients);

 private:
  Lars(const Buckets& buckets, const LarsCoefficients& coefficients, std::vector<Layers> layers);
  template <typename T>
  void UpdateLayer(const Memory<T>& memory, int threads);
  void Update(const Memory<float>& memory, int threads) override { UpdateLayer(memory, threads); }
  void Update(const Memory<double>& memory, int threads) override { UpdateLayer(memory, threads); }
  void UpdateOnGpu(device::Cuda& kernels, const device::UpdateTensors& tensors,
                   const torch::Tensor& velocities) override;
  Updated UpdateByLibtorch(size_t bucket, const torch::Tensor& velocities) override;

  const double trust_;
  std::vector<Layers> layers_;  // one per bucket
};

}  // namespace tutti::train
