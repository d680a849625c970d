// BatchNorm is batch normalisation (Ioffe and Szegedy 2015) over the channels of [N, C, H, W], with
// torch's names, defaults and arithmetic, and a switch to statistics over all ranks.
//
// Invariant: weights and statistics are in at least fp32. A running mean in bf16 would stop moving,
// so to(bf16) and to(half) pass this module by; its output has the input's type all the same.
// Thread-compatible.
#pragma once

#include <torch/nn/module.h>

#include "runtime/device/kernels/layers.h"
#include "runtime/models/layer.h"
#include "runtime/models/model.h"

namespace tutti::models {

class BatchNormImpl : public torch::nn::Module {
 public:
  explicit BatchNormImpl(int64_t channels, double epsilon = kEpsilon);

  torch::Tensor forward(torch::Tensor images);
  // Returns relu(forward(images)), and relu(forward(images) + residual): in few passes over memory
  // where there are kernels for it (fused.h).
  torch::Tensor Activated(const torch::Tensor& images);
  Fork Joined(const torch::Tensor& images, const torch::Tensor& residual);
  // Returns relu(forward(images) + other.forward(others)).
  Fork Joined(const torch::Tensor& images, BatchNormImpl& other, const torch::Tensor& others);

  // Sets how to sum; null: statistics of this rank's batch alone.
  void set_sum_over_ranks(SumOverRanks sum) { sum_ = std::move(sum); }

  // num_batches_tracked stays int64, and reduced types change nothing.
  void to(torch::Device device, torch::Dtype type, bool non_blocking = false) override;
  void to(torch::Dtype type, bool non_blocking = false) override;
  void to(torch::Device device, bool non_blocking = false) override;

  torch::Tensor weight, bias;  // [C]
  torch::Tensor running_mean, running_var, num_batches_tracked;

  static constexpr double kMomentum = 0.1;
  static constexpr double kEpsilon = 1e-5;

 private:
  bool Fuses(const torch::Tensor& images) const;
  device::BatchNormTensors Tensors() const;
  Fork Fused(const torch::Tensor& images, const torch::Tensor& residual, bool relu);

  double epsilon_;
  SumOverRanks sum_;
};
TORCH_MODULE(BatchNorm);

}  // namespace tutti::models
