// SingleShotDetector detects objects in one pass (Liu et al. 2016, "SSD: Single Shot MultiBox
// Detector"): at every position of several feature maps, convolutions classify default boxes of
// several shapes and say how each is to be moved. Names as torchvision's ssd300_vgg16:
// backbone.features.0, backbone.extra.0.1, head.classification_head.module_list.0,
// head.regression_head.module_list.0.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/conv.h>

#include <memory>
#include <vector>

#include "runtime/models/model.h"

namespace tutti::models {

// One of the maps whose positions have boxes.
struct FeatureMap {
  int64_t channels = 0;
  int64_t size = 0;                   // positions a side
  double step = 0;                    // pixels between two of them
  double scale = 0, next_scale = 0;   // of the boxes' sides, in parts of the image's
  std::vector<double> aspect_ratios;  // besides 1, each both ways round

  // Counts a square of `scale`, one of the geometric mean with `next_scale`, two an aspect ratio.
  int64_t boxes() const { return 2 + 2 * static_cast<int64_t>(aspect_ratios.size()); }
};

// Returns [A, 4] fp32: centre x, y, width, height in parts of an image of `size` pixels a side; map
// by map, row by row, box by box.
torch::Tensor DefaultBoxes(const std::vector<FeatureMap>& maps, int64_t size);

// Images -> the maps.
class FeatureExtractor : public torch::nn::Module {
 public:
  virtual std::vector<torch::Tensor> Maps(torch::Tensor images) = 0;
  virtual void Initialise(const FirstDraws& draws) = 0;
};

// [N, 3, size, size] -> [N, A, 4 + 1 + classes]: how each default box moves
// (tasks/box_arithmetic.h), then its logits, of which the first is the background's.
class SingleShotDetector : public ModelImpl {
 public:
  SingleShotDetector(std::shared_ptr<FeatureExtractor> backbone, std::vector<FeatureMap> maps,
                     int64_t size, int64_t classes);
  torch::Tensor forward(torch::Tensor images) override;
  void Initialise(const FirstDraws& draws) override;

  const torch::Tensor& default_boxes() const { return default_boxes_; }
  int64_t size() const { return size_; }

 private:
  const int64_t size_, classes_;
  const torch::Tensor default_boxes_;
  std::shared_ptr<FeatureExtractor> backbone_;
  std::shared_ptr<torch::nn::Module> head_;
  std::vector<torch::nn::Conv2d> moves_, scores_;  // a map each
};

// Makes VGG-16 and four more stages, for images of 300 x 300: the paper's network, 8732 boxes.
Model MakeSsd300(int64_t classes);
// Makes the same head on ResNet-20, for images of 64 x 64: 1360 boxes, in 1/200 of the time.
Model MakeSsd64(int64_t classes);

}  // namespace tutti::models
