#include "runtime/models/layers/layered_model.h"

#include <string>

#include "absl/strings/str_split.h"

namespace tutti::models {
namespace {

struct NamePlace {
  torch::nn::Module* parent;
  std::string name;
};

// Finds where "layer1.0" stands below `root`, and makes the modules on the way there ("layer1").
NamePlace PlaceOf(torch::nn::Module& root, const std::string& dotted) {
  std::vector<std::string> parts = absl::StrSplit(dotted, '.');
  torch::nn::Module* parent = &root;
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    const auto children = parent->named_children();
    const auto* known = children.find(parts[i]);
    parent = known != nullptr
                 ? known->get()
                 : parent->register_module(parts[i], std::make_shared<torch::nn::Module>()).get();
  }
  return {parent, std::move(parts.back())};
}

}  // namespace

void LayeredModel::Append(Layer layer) {
  for (const auto& [dotted, module] : layer.modules) {
    const NamePlace place = PlaceOf(*this, dotted);
    place.parent->register_module(place.name, module);
  }
  for (const auto& [dotted, parameter] : layer.parameters) {
    const NamePlace place = PlaceOf(*this, dotted);
    place.parent->register_parameter(place.name, parameter, parameter.requires_grad());
  }
  layers_.push_back(std::move(layer));
}

Fork LayeredModel::Run(Fork x, size_t first, size_t last) const {
  for (size_t i = first; i < last; ++i) x = layers_[i].forward(x);
  return x;
}

torch::Tensor LayeredModel::forward(torch::Tensor input) {
  return Run({input, std::move(input)}, 0, layers_.size()).main;
}

Model MakeStage(std::vector<Layer> layers) {
  const auto stage = std::make_shared<LayeredModel>();
  bool trains = true;
  for (Layer& layer : layers) {
    for (const auto& [name, module] : layer.modules) trains = module->is_training();
    stage->Append(std::move(layer));
  }
  stage->train(trains);  // the modules between, too
  return stage;
}

}  // namespace tutti::models
