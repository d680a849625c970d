// Defines a multilayer perceptron: linear layers of 256 values with a ReLU between, of all pixels
// of an image. Names: classifier.0, classifier.2, ... It is here to look at training with, where a
// step is to take no time: what is measured on it says little of convolutions.
#pragma once

#include "runtime/models/networks/feature_classifier.h"

namespace tutti::models {

class MultilayerPerceptron : public FeatureClassifier {
 public:
  // Of images [N, 3, size, size]; others are brought to that size by means.
  MultilayerPerceptron(int64_t size, int64_t layers, int64_t classes);
  // Draws normally, of variance 2 / fan_in (He et al. 2015).
  void Initialise(const FirstDraws& draws) override;
};

}  // namespace tutti::models
