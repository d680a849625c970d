#include "runtime/models/layers/initialisation.h"

#include <ATen/CPUGeneratorImpl.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/hash.h"

namespace tutti::models {
namespace {

using torch::Tensor;

double FanIn(const Tensor& weight) { return static_cast<double>(weight[0].numel()); }

double FanOut(const Tensor& weight) {  // [out, in, k, k]
  return static_cast<double>(weight.size(0) * weight.size(2) * weight.size(3));
}

void Zero(Tensor& bias) {
  if (bias.defined()) bias.zero_();
}

template <typename Layer>
void DrawUniformOf(Layer& layer, at::Generator& generator) {
  const double bound = 1 / std::sqrt(FanIn(layer.weight));
  layer.weight.uniform_(-bound, bound, generator);
  if (layer.bias.defined()) layer.bias.uniform_(-bound, bound, generator);
}

}  // namespace

FirstDraws FirstDraws::Below(absl::string_view child) const {
  return FirstDraws(seed_, absl::StrCat(within_, child, "."));
}

at::Generator FirstDraws::For(absl::string_view name) const {
  const base::Sha256Digest digest = base::Sha256Of(absl::StrCat(seed_, " ", within_, name));
  uint64_t own = 0;
  for (size_t i = 0; i < sizeof(own); ++i) own = own << 8 | digest[i];
  return at::make_generator<at::CPUGeneratorImpl>(own);
}

void DrawFanOut(torch::nn::Conv2dImpl& convolution, at::Generator& generator) {
  convolution.weight.normal_(0, std::sqrt(2 / FanOut(convolution.weight)), generator);
  Zero(convolution.bias);
}

void DrawUniform(torch::nn::Conv2dImpl& convolution, at::Generator& generator) {
  DrawUniformOf(convolution, generator);
}

void DrawUniform(torch::nn::LinearImpl& linear, at::Generator& generator) {
  DrawUniformOf(linear, generator);
}

void DrawNormal(torch::nn::LinearImpl& linear, double deviation, at::Generator& generator) {
  linear.weight.normal_(0, deviation, generator);
  Zero(linear.bias);
}

void DrawXavier(torch::nn::Conv2dImpl& convolution, at::Generator& generator) {
  Tensor& weight = convolution.weight;
  const double bound = std::sqrt(6 / (FanIn(weight) + FanOut(weight)));
  weight.uniform_(-bound, bound, generator);
  Zero(convolution.bias);
}

}  // namespace tutti::models
