#include "runtime/models/layers/blocks.h"

#include "runtime/models/layers/fused.h"

namespace tutti::models {

using torch::Tensor;

torch::nn::Conv2dOptions ConvolutionOf(int64_t inputs, int64_t outputs, int64_t kernel,
                                       int64_t stride) {
  return torch::nn::Conv2dOptions(inputs, outputs, kernel)
      .stride(stride)
      .padding(kernel / 2)
      .bias(false);
}

Tensor ZeroPadded(const Tensor& x, int64_t channels, int64_t stride) {
  const Tensor sampled = x.slice(2, 0, c10::nullopt, stride).slice(3, 0, c10::nullopt, stride);
  return torch::constant_pad_nd(sampled, {0, 0, 0, 0, 0, channels - x.size(1)});
}

Tensor MaxPool(const Tensor& x, int64_t padding) {
  return padding == 1 && CanFuse(x) ? FusedMaxPool(x) : PlainMaxPool(x, padding);
}

Tensor ChainImpl::forward(Tensor x) {
  for (const Step& step : steps_) x = step.forward(std::move(x));
  return x;
}

ConvNormImpl::ConvNormImpl(const torch::nn::Conv2dOptions& convolution, const Options& options)
    : activation_(options.activation),
      convolution_(register_module(options.convolution, torch::nn::Conv2d(convolution))),
      norm_(register_module(options.norm, BatchNorm(convolution.out_channels(), options.epsilon))) {
}

Tensor ConvNormImpl::forward(Tensor x) {
  x = Convolved(convolution_, x);
  switch (activation_) {
    case Activation::kNone:
      return norm_->forward(std::move(x));
    case Activation::kRelu:
      return norm_->Activated(x);
    case Activation::kRelu6:
      break;
  }
  x = norm_->forward(std::move(x));
  return torch::hardtanh_(x, 0, 6);
}

}  // namespace tutti::models
