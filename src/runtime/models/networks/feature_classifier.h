// FeatureClassifier is the shape that VGG and the MobileNets share: a chain of features, their mean
// over a small grid, a classifier. Names: features.0, ..., classifier. Internal to this room.
#pragma once

#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <functional>
#include <utility>

#include "runtime/models/layers/blocks.h"
#include "runtime/models/layers/initialisation.h"
#include "runtime/models/model.h"

namespace tutti::models {

class FeatureClassifier : public ModelImpl {
 public:
  torch::Tensor forward(torch::Tensor images) override {
    const torch::Tensor features = features_->forward(std::move(images));
    return classify_(torch::adaptive_avg_pool2d(features, {grid_, grid_}).flatten(1));
  }
  void Initialise(at::Generator generator) override {
    DrawEach(
        *this, [&](torch::nn::Conv2dImpl& layer) { DrawFanOut(layer, generator); },
        [&](torch::nn::LinearImpl& layer) { DrawNormal(layer, 0.01, generator); });
  }

 protected:
  // `grid`: positions a side that the classifier gets.
  explicit FeatureClassifier(int64_t grid) : grid_(grid) {}
  // Call once, when all features are appended, with a module [N, channels * grid * grid] -> logits.
  template <typename Classifier>
  void EndWith(Classifier classifier) {
    register_module("features", features_);
    register_module("classifier", classifier);
    classify_ = [classifier](torch::Tensor x) mutable { return classifier->forward(std::move(x)); };
  }
  Chain features_;

 private:
  const int64_t grid_;
  std::function<torch::Tensor(torch::Tensor)> classify_;
};

}  // namespace tutti::models
