#include "runtime/models/networks/vgg.h"

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

namespace tutti::models {
namespace {

constexpr int64_t kVggGrid = 7;

torch::nn::ReLU InPlaceRelu() { return torch::nn::ReLU(torch::nn::ReLUOptions(/*inplace=*/true)); }

}  // namespace

void AppendVggStage(Chain& chain, int64_t inputs, int64_t outputs, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    chain->Append(torch::nn::Conv2d(
        ConvolutionOf(i == 0 ? inputs : outputs, outputs, /*kernel=*/3).bias(true)));
    chain->Append(InPlaceRelu());
  }
}

torch::nn::MaxPool2d HalvingPool(bool round_up) {
  return torch::nn::MaxPool2d(torch::nn::MaxPool2dOptions(2).stride(2).ceil_mode(round_up));
}

Vgg16::Vgg16(int64_t classes) {
  Chain features;
  int64_t channels = 3;
  for (const auto& [outputs, count] :
       {std::pair<int64_t, int64_t>{64, 2}, {128, 2}, {256, 3}, {512, 3}, {512, 3}}) {
    AppendVggStage(features, channels, outputs, count);
    features->Append(HalvingPool());
    channels = outputs;
  }
  Chain classifier;
  int64_t inputs = channels * kVggGrid * kVggGrid;
  for (int hidden = 0; hidden < 2; ++hidden) {
    classifier->Append(torch::nn::Linear(inputs, 4096));
    classifier->Append(InPlaceRelu());
    classifier->Append(torch::nn::Dropout(0.5));
    inputs = 4096;
  }
  classifier->Append(torch::nn::Linear(inputs, classes));
  Make(features, kVggGrid, classifier);
}

}  // namespace tutti::models
