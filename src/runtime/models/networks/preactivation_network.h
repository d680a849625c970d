// PreactivationNetwork is a residual network with the activations first (He, Zhang, Ren, Sun 2016,
// "Identity Mappings in Deep Residual Networks"), known as v2: the sum of a block goes on as it is,
// and batch-norm and ReLU stand before each convolution. As in the paper's appendix the first block
// begins with the stem's activation and a last one follows the last sum; a projection sees the
// activation that the block's first convolution sees, and has no batch-norm.
//
// Names are those of ResidualNetwork, and `norm` for the last batch-norm; layer1.0 has no bn1.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/conv.h>

#include <vector>

#include "runtime/models/layers/layered_model.h"
#include "runtime/models/networks/residual_network.h"

namespace tutti::models {

class PreactivationBlockImpl : public torch::nn::Module {
 public:
  // `activated`: the input is an activation already.
  PreactivationBlockImpl(const ResidualOptions& options, int64_t inputs, int64_t width,
                         int64_t stride, bool activated);
  torch::Tensor forward(torch::Tensor x);
  int64_t outputs() const { return outputs_; }

 private:
  torch::Tensor Shortcut(const torch::Tensor& x, const torch::Tensor& activation);

  int64_t inputs_, outputs_, stride_;
  std::vector<BatchNorm> norms_;  // before each convolution; the first may be null
  std::vector<torch::nn::Conv2d> convolutions_;
  torch::nn::Conv2d projection_{nullptr};
};
TORCH_MODULE(PreactivationBlock);

class PreactivationNetwork : public LayeredModel {
 public:
  explicit PreactivationNetwork(const ResidualOptions& options);
  void Initialise(const FirstDraws& draws) override;
};

}  // namespace tutti::models
