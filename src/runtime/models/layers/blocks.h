// Makes the parts that several networks have in common, with the names that torchvision gives them.
// Internal to this room.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/conv.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/models/layers/batch_norm.h"

namespace tutti::models {

// Describes a convolution without bias, padded so that a stride of 1 keeps the size.
torch::nn::Conv2dOptions ConvolutionOf(int64_t inputs, int64_t outputs, int64_t kernel,
                                       int64_t stride = 1);

// Returns the shortcut of a residual block without parameters: every stride-th pixel, and zeros in
// the new channels.
torch::Tensor ZeroPadded(const torch::Tensor& x, int64_t channels, int64_t stride);

// Pools 3x3 with stride 2.
torch::Tensor MaxPool(const torch::Tensor& x, int64_t padding = 1);

// Modules one after the other, with their numbers as names: a Sequential that may hold another.
class ChainImpl : public torch::nn::Module {
 public:
  struct Step {
    std::shared_ptr<torch::nn::Module> module;
    std::function<torch::Tensor(torch::Tensor)> forward;
  };

  template <typename Holder>
  void Append(Holder layer) {
    register_module(std::to_string(steps_.size()), layer);
    steps_.push_back(
        {layer.ptr(), [layer](torch::Tensor x) mutable { return layer->forward(std::move(x)); }});
  }
  torch::Tensor forward(torch::Tensor x);
  const std::vector<Step>& steps() const { return steps_; }

 private:
  std::vector<Step> steps_;
};
TORCH_MODULE(Chain);

// Convolution, batch-norm and what makes it non-linear.
class ConvNormImpl : public torch::nn::Module {
 public:
  enum class Activation { kNone, kRelu, kRelu6 };
  struct Options {
    Activation activation = Activation::kRelu;
    double epsilon = BatchNormImpl::kEpsilon;
    std::string convolution = "0", norm = "1";  // the parts' names
  };
  ConvNormImpl(const torch::nn::Conv2dOptions& convolution, const Options& options);
  torch::Tensor forward(torch::Tensor x);

 private:
  const Activation activation_;
  torch::nn::Conv2d convolution_;
  BatchNorm norm_;
};
TORCH_MODULE(ConvNorm);

}  // namespace tutti::models
