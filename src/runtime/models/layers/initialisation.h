// Draws first weights as torchvision's networks do, from one generator. Internal to this room.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

namespace tutti::models {

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

// Draws every convolution and every linear layer of `module`, in the order of their registration.
template <typename OfConvolution, typename OfLinear>
void DrawEach(const torch::nn::Module& module, const OfConvolution& of_convolution,
              const OfLinear& of_linear) {
  for (const auto& part : module.modules()) {
    if (auto* convolution = part->as<torch::nn::Conv2dImpl>()) of_convolution(*convolution);
    if (auto* linear = part->as<torch::nn::LinearImpl>()) of_linear(*linear);
  }
}

}  // namespace tutti::models
