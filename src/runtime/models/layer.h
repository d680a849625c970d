// Layer is a part of a model between two places at which it may be cut: a model that can be laid
// over several ranks is a list of them (ModelImpl::Layers). Thread-compatible.
#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tutti::models {

// One activation for two consumers, of which autograd keeps the gradients apart: who made it adds
// them up on the way, where libtorch would take a pass over memory.
struct Fork {
  torch::Tensor main, shortcut;
};

struct Layer {
  std::string name;  // as a user calls it: of its first module in the model, "layer1.0"
  // What it holds, under the names that the model has for them ("layer1.0", "class_token").
  std::vector<std::pair<std::string, std::shared_ptr<torch::nn::Module>>> modules;
  std::vector<std::pair<std::string, torch::Tensor>> parameters;  // beside those of the modules
  // Takes what the layer before it returns, of the first layer the model's input as both parts. It
  // holds the layer's own modules alone, and changes none of its input in place.
  std::function<Fork(const Fork&)> forward;
};

}  // namespace tutti::models
