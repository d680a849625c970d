// FeatureClassifier is the shape that VGG and the MobileNets share: a chain of features, their mean
// over a small grid, a classifier. Names: features.0, ..., classifier. Internal to this room.
//
// A layer begins at each step that has parameters: what has none belongs to the layer before it, so
// that none begins with a ReLU, which works in place. Of no features the mean is in the first one.
#pragma once

#include <torch/nn/modules/linear.h>

#include "runtime/models/layers/blocks.h"
#include "runtime/models/layers/layered_model.h"

namespace tutti::models {

class FeatureClassifier : public LayeredModel {
 public:
  void Initialise(const FirstDraws& draws) override;

 protected:
  // Each takes features whose mean is over `grid` positions a side, and a classifier of [N,
  // channels * grid * grid]. Call one, once.
  void Make(const Chain& features, int64_t grid, const Chain& classifier);
  void Make(const Chain& features, int64_t grid, torch::nn::Linear classifier);
};

}  // namespace tutti::models
