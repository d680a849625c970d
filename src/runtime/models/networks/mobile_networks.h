// Defines MobileNetV1 and MobileNetV2, networks of depthwise-separable convolutions.
//
// MobileNetV1: Howard et al. 2017, "MobileNets", table 1; names features.0, features.1.0 (the
// depthwise layer), features.1.1, ..., classifier. torchvision does not have it.
// MobileNetV2: Sandler et al. 2018, "Inverted Residuals and Linear Bottlenecks", table 2; names as
// torchvision's: features.0.0, features.1.conv.0.0, ..., classifier.1.
#pragma once

#include <torch/nn/module.h>

#include "runtime/models/layers/blocks.h"
#include "runtime/models/networks/feature_classifier.h"

namespace tutti::models {

class MobileNetV1 : public FeatureClassifier {
 public:
  explicit MobileNetV1(int64_t classes);
};

// y = conv(x), and + x where the shape is the same; conv = (expand)-depthwise-project.
class InvertedResidualImpl : public torch::nn::Module {
 public:
  InvertedResidualImpl(int64_t inputs, int64_t outputs, int64_t stride, int64_t expansion);
  torch::Tensor forward(torch::Tensor x);

 private:
  const bool adds_;
  Chain layers_;
};
TORCH_MODULE(InvertedResidual);

class MobileNetV2 : public FeatureClassifier {
 public:
  explicit MobileNetV2(int64_t classes);
};

}  // namespace tutti::models
