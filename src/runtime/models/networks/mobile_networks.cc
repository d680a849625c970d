#include "runtime/models/networks/mobile_networks.h"

#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

namespace tutti::models {
namespace {

using torch::Tensor;
using Activation = ConvNormImpl::Activation;

ConvNorm Depthwise(int64_t channels, int64_t stride, Activation activation) {
  return ConvNorm(ConvolutionOf(channels, channels, 3, stride).groups(channels),
                  ConvNormImpl::Options{.activation = activation});
}

ConvNorm Dense(int64_t inputs, int64_t outputs, int64_t kernel, int64_t stride,
               Activation activation) {
  return ConvNorm(ConvolutionOf(inputs, outputs, kernel, stride),
                  ConvNormImpl::Options{.activation = activation});
}

}  // namespace

MobileNetV1::MobileNetV1(int64_t classes) {
  Chain features;
  struct Block {
    int64_t outputs, stride;
  };
  features->Append(Dense(3, 32, 3, 2, Activation::kRelu));
  int64_t channels = 32;
  for (const Block& block : {Block{64, 1},
                             {128, 2},
                             {128, 1},
                             {256, 2},
                             {256, 1},
                             {512, 2},
                             {512, 1},
                             {512, 1},
                             {512, 1},
                             {512, 1},
                             {512, 1},
                             {1024, 2},
                             {1024, 1}}) {
    Chain separable;
    separable->Append(Depthwise(channels, block.stride, Activation::kRelu));
    separable->Append(Dense(channels, block.outputs, 1, 1, Activation::kRelu));
    features->Append(separable);
    channels = block.outputs;
  }
  Make(features, /*grid=*/1, torch::nn::Linear(channels, classes));
}

InvertedResidualImpl::InvertedResidualImpl(int64_t inputs, int64_t outputs, int64_t stride,
                                           int64_t expansion)
    : adds_(stride == 1 && inputs == outputs) {
  const int64_t hidden = inputs * expansion;
  if (expansion != 1) layers_->Append(Dense(inputs, hidden, 1, 1, Activation::kRelu6));
  layers_->Append(Depthwise(hidden, stride, Activation::kRelu6));
  layers_->Append(torch::nn::Conv2d(ConvolutionOf(hidden, outputs, 1)));
  layers_->Append(BatchNorm(outputs));
  register_module("conv", layers_);
}

Tensor InvertedResidualImpl::forward(Tensor x) {
  const Tensor y = layers_->forward(x);
  return adds_ ? x + y : y;
}

MobileNetV2::MobileNetV2(int64_t classes) {
  Chain features;
  struct Stage {
    int64_t expansion, outputs, blocks, stride;
  };
  features->Append(Dense(3, 32, 3, 2, Activation::kRelu6));
  int64_t channels = 32;
  for (const Stage& stage : {Stage{1, 16, 1, 1},
                             {6, 24, 2, 2},
                             {6, 32, 3, 2},
                             {6, 64, 4, 2},
                             {6, 96, 3, 1},
                             {6, 160, 3, 2},
                             {6, 320, 1, 1}}) {
    for (int64_t i = 0; i < stage.blocks; ++i) {
      features->Append(
          InvertedResidual(channels, stage.outputs, i == 0 ? stage.stride : 1, stage.expansion));
      channels = stage.outputs;
    }
  }
  features->Append(Dense(channels, 1280, 1, 1, Activation::kRelu6));
  Chain classifier;
  classifier->Append(torch::nn::Dropout(0.2));
  classifier->Append(torch::nn::Linear(1280, classes));
  Make(features, /*grid=*/1, classifier);
}

}  // namespace tutti::models
