#include "runtime/models/networks/single_shot_detector.h"

#include <torch/nn/modules/linear.h>

#include <cmath>

#include "runtime/models/layers/initialisation.h"

namespace tutti::models {
namespace {

using torch::Tensor;

// Centres of the positions [size * size, 2], row by row.
Tensor Centres(const FeatureMap& map, int64_t image) {
  const Tensor along = (torch::arange(map.size) + 0.5) / (static_cast<double>(image) / map.step);
  const auto grid = torch::meshgrid({along, along}, "ij");
  return torch::stack({grid[1], grid[0]}, -1).view({-1, 2});
}

// Widths and heights [boxes, 2].
Tensor Shapes(const FeatureMap& map) {
  const double between = std::sqrt(map.scale * map.next_scale);
  std::vector<double> shapes = {map.scale, map.scale, between, between};
  for (const double ratio : map.aspect_ratios) {
    const double longer = map.scale * std::sqrt(ratio), shorter = map.scale / std::sqrt(ratio);
    shapes.insert(shapes.end(), {longer, shorter, shorter, longer});
  }
  return torch::tensor(shapes, torch::kFloat32).view({-1, 2}).clamp(0, 1);
}

std::shared_ptr<torch::nn::Module> Convolutions(const std::vector<FeatureMap>& maps, int64_t a_box,
                                                std::vector<torch::nn::Conv2d>& into) {
  auto list = std::make_shared<torch::nn::Module>();
  for (const FeatureMap& map : maps) {
    into.push_back(list->register_module(
        std::to_string(into.size()),
        torch::nn::Conv2d(
            torch::nn::Conv2dOptions(map.channels, map.boxes() * a_box, 3).padding(1))));
  }
  auto head = std::make_shared<torch::nn::Module>();
  head->register_module("module_list", list);
  return head;
}

// [N, boxes * K, H, W] -> [N, H * W * boxes, K], without a word about N, so that a trace of it
// takes any.
Tensor PerBox(const Tensor& map, int64_t a_box) {
  return map.permute({0, 2, 3, 1}).flatten(1).unflatten(1, {-1, a_box});
}

}  // namespace

Tensor DefaultBoxes(const std::vector<FeatureMap>& maps, int64_t size) {
  std::vector<Tensor> boxes;
  for (const FeatureMap& map : maps) {
    const int64_t positions = map.size * map.size, shapes = map.boxes();
    boxes.push_back(torch::cat(
        {Centres(map, size).repeat_interleave(shapes, 0), Shapes(map).repeat({positions, 1})}, 1));
  }
  return torch::cat(boxes);
}

SingleShotDetector::SingleShotDetector(std::shared_ptr<FeatureExtractor> backbone,
                                       std::vector<FeatureMap> maps, int64_t size, int64_t classes)
    : size_(size), classes_(classes + 1), default_boxes_(DefaultBoxes(maps, size)) {
  backbone_ = register_module("backbone", std::move(backbone));
  head_ = register_module("head", std::make_shared<torch::nn::Module>());
  head_->register_module("classification_head", Convolutions(maps, classes_, scores_));
  head_->register_module("regression_head", Convolutions(maps, 4, moves_));
}

Tensor SingleShotDetector::forward(Tensor images) {
  TORCH_CHECK(images.size(2) == size_ && images.size(3) == size_, "the detector takes images of ",
              size_, " x ", size_, ", not ", images.size(3), " x ", images.size(2));
  const std::vector<Tensor> maps = backbone_->Maps(std::move(images));
  std::vector<Tensor> moves, scores;
  for (size_t i = 0; i < maps.size(); ++i) {
    moves.push_back(PerBox(moves_[i]->forward(maps[i]), 4));
    scores.push_back(PerBox(scores_[i]->forward(maps[i]), classes_));
  }
  return torch::cat({torch::cat(moves, 1), torch::cat(scores, 1)}, 2);
}

void SingleShotDetector::Initialise(const FirstDraws& draws) {
  backbone_->Initialise(draws.Below("backbone"));
  DrawConvolutions(*head_, draws.Below("head"), DrawXavier);
}

}  // namespace tutti::models
