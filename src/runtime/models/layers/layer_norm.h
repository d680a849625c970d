// LayerNorm is layer normalisation (Ba, Kiros and Hinton 2016) over the last dimension, with
// torch's names and arithmetic.
//
// Invariant: as of a batch-norm (batch_norm.h), weight and bias are in at least fp32, and so is the
// arithmetic, whatever the input's type; the output has the input's. Thread-compatible.
#pragma once

#include <torch/nn/module.h>

namespace tutti::models {

class LayerNormImpl : public torch::nn::Module {
 public:
  LayerNormImpl(int64_t width, double epsilon);

  torch::Tensor forward(const torch::Tensor& x);  // [..., width]

  // Reduced types change nothing.
  void to(torch::Device device, torch::Dtype type, bool non_blocking = false) override;
  void to(torch::Dtype type, bool non_blocking = false) override;
  void to(torch::Device device, bool non_blocking = false) override;

  torch::Tensor weight, bias;  // [width]

 private:
  double epsilon_;
};
TORCH_MODULE(LayerNorm);

}  // namespace tutti::models
