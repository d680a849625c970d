// Draws first weights as torchvision's networks do. Internal to this room.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace tutti::models {

// FirstDraws says where first weights come from. Each layer has a generator of its own, which the
// seed and the layer's name in the whole network alone decide: whoever makes it, with whichever
// others, in whatever order.
class FirstDraws {
 public:
  explicit FirstDraws(uint64_t seed, std::string within = "")
      : seed_(seed), within_(std::move(within)) {}

  // Returns those of the layers of this child ("backbone"), whose own names begin there.
  FirstDraws Below(absl::string_view child) const;
  // Returns the generator of the layer, or of the parameter, of this name.
  at::Generator For(absl::string_view name) const;

 private:
  uint64_t seed_;
  std::string within_;  // "", "backbone.", ...
};

// Draws normally, of variance 2 / fan_out (He et al. 2015, "Delving Deep into Rectifiers"); no
// bias.
void DrawFanOut(torch::nn::Conv2dImpl& convolution, at::Generator& generator);
// Draws uniformly in +-1/sqrt(fan_in), weight and bias: torch's own.
void DrawUniform(torch::nn::Conv2dImpl& convolution, at::Generator& generator);
void DrawUniform(torch::nn::LinearImpl& linear, at::Generator& generator);
// Draws normally, of that deviation; no bias.
void DrawNormal(torch::nn::LinearImpl& linear, double deviation, at::Generator& generator);
// Draws uniformly, of variance 2 / (fan_in + fan_out) (Glorot and Bengio 2010); no bias.
void DrawXavier(torch::nn::Conv2dImpl& convolution, at::Generator& generator);

// Calls one of the two with every convolution and every linear layer of `module`, in the order of
// their registration, and with the layer's generator.
template <typename OfConvolution, typename OfLinear>
void DrawEach(const torch::nn::Module& module, const FirstDraws& draws,
              const OfConvolution& of_convolution, const OfLinear& of_linear) {
  for (const auto& part : module.named_modules()) {
    auto* convolution = part.value()->as<torch::nn::Conv2dImpl>();
    auto* linear = part.value()->as<torch::nn::LinearImpl>();
    if (convolution == nullptr && linear == nullptr) continue;
    at::Generator generator = draws.For(part.key());
    if (convolution != nullptr) of_convolution(*convolution, generator);
    if (linear != nullptr) of_linear(*linear, generator);
  }
}

// Does the same with convolutions alone.
template <typename OfConvolution>
void DrawConvolutions(const torch::nn::Module& module, const FirstDraws& draws,
                      const OfConvolution& of_convolution) {
  DrawEach(module, draws, of_convolution, [](torch::nn::LinearImpl&, at::Generator&) {});
}

}  // namespace tutti::models
