// Defines VGG (Simonyan and Zisserman 2015, "Very Deep Convolutional Networks for Large-Scale Image
// Recognition"), configuration D: 13 convolutions of 3x3 and three linear layers. Names as
// torchvision's vgg16: features.0, ..., classifier.6.
#pragma once

#include <torch/nn/modules/pooling.h>

#include "runtime/models/layers/blocks.h"
#include "runtime/models/networks/feature_classifier.h"

namespace tutti::models {

// Appends `count` convolutions of 3x3, each with its ReLU; from `inputs` to `outputs` channels.
void AppendVggStage(Chain& chain, int64_t inputs, int64_t outputs, int64_t count);
// Halves the size; an odd one is rounded up or, as VGG does, down.
torch::nn::MaxPool2d HalvingPool(bool round_up = false);

class Vgg16 : public FeatureClassifier {
 public:
  explicit Vgg16(int64_t classes);
};

}  // namespace tutti::models
