#include "runtime/models/networks/multilayer_perceptron.h"

#include <torch/nn/modules/activation.h>

#include <cmath>

#include "runtime/models/layers/initialisation.h"

namespace tutti::models {

MultilayerPerceptron::MultilayerPerceptron(int64_t size, int64_t layers, int64_t classes) {
  constexpr int64_t kWidth = 256;
  Chain chain;
  int64_t inputs = 3 * size * size;
  for (int64_t layer = 1; layer < layers; ++layer) {
    chain->Append(torch::nn::Linear(inputs, kWidth));
    chain->Append(torch::nn::ReLU());
    inputs = kWidth;
  }
  chain->Append(torch::nn::Linear(inputs, classes));
  Make(Chain(), size, chain);
}

void MultilayerPerceptron::Initialise(const FirstDraws& draws) {
  DrawEach(*this, draws, DrawFanOut, [](torch::nn::LinearImpl& layer, at::Generator& generator) {
    DrawNormal(layer, std::sqrt(2.0 / static_cast<double>(layer.options.in_features())), generator);
  });
}

}  // namespace tutti::models
