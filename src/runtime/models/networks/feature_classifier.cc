#include "runtime/models/networks/feature_classifier.h"

#include <torch/nn/modules/conv.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/models/layers/initialisation.h"

namespace tutti::models {
namespace {

using torch::Tensor;

struct NamedStep {
  std::string name;
  ChainImpl::Step step;  // without a module: a function
};

// The features and what makes their mean.
std::vector<NamedStep> FeatureSteps(const Chain& features, int64_t grid) {
  std::vector<NamedStep> steps;
  for (const ChainImpl::Step& step : features->steps()) {
    steps.push_back({absl::StrCat("features.", steps.size()), step});
  }
  const auto mean = [grid](const Tensor& x) {
    const bool has_size = x.size(2) == grid && x.size(3) == grid;
    return (has_size ? x : torch::adaptive_avg_pool2d(x, {grid, grid})).flatten(1);
  };
  steps.push_back({"", {nullptr, mean}});
  return steps;
}

bool HasParameters(const ChainImpl::Step& step) {
  return step.module != nullptr && !step.module->parameters().empty();
}

// Takes the first layer off `steps`, from `at` on.
Layer NextLayer(const std::vector<NamedStep>& steps, size_t& at) {
  Layer layer;
  std::vector<ChainImpl::Step> inside;
  bool has_parameters = false;
  do {
    const auto& [name, step] = steps[at];
    if (layer.name.empty()) layer.name = name;
    if (step.module != nullptr) layer.modules.emplace_back(name, step.module);
    has_parameters |= HasParameters(step);
    inside.push_back(step);
  } while (++at < steps.size() && !(has_parameters && HasParameters(steps[at].step)));
  layer.forward = [inside](const Fork& x) -> Fork {
    Tensor y = x.main;
    for (const ChainImpl::Step& step : inside) y = step.forward(std::move(y));
    return {y, y};
  };
  return layer;
}

}  // namespace

void FeatureClassifier::Make(const Chain& features, int64_t grid, const Chain& classifier) {
  std::vector<NamedStep> steps = FeatureSteps(features, grid);
  const size_t first = steps.size();
  for (const ChainImpl::Step& step : classifier->steps()) {
    steps.push_back({absl::StrCat("classifier.", steps.size() - first), step});
  }
  for (size_t at = 0; at < steps.size();) Append(NextLayer(steps, at));
}

void FeatureClassifier::Make(const Chain& features, int64_t grid, torch::nn::Linear classifier) {
  std::vector<NamedStep> steps = FeatureSteps(features, grid);
  const auto classify = [classifier](const Tensor& x) mutable { return classifier->forward(x); };
  steps.push_back({"classifier", {classifier.ptr(), classify}});
  for (size_t at = 0; at < steps.size();) Append(NextLayer(steps, at));
}

void FeatureClassifier::Initialise(const FirstDraws& draws) {
  DrawEach(*this, draws, DrawFanOut,
           [](torch::nn::LinearImpl& layer, at::Generator& g) { DrawNormal(layer, 0.01, g); });
}

}  // namespace tutti::models
