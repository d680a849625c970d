#include "runtime/models/layers/layer_norm.h"

namespace tutti::models {

LayerNormImpl::LayerNormImpl(int64_t width, double epsilon)
    : weight(register_parameter("weight", torch::ones(width))),
      bias(register_parameter("bias", torch::zeros(width))),
      epsilon_(epsilon) {}

torch::Tensor LayerNormImpl::forward(const torch::Tensor& x) {
  const torch::Tensor wide = x.to(weight.scalar_type());
  return torch::layer_norm(wide, weight.sizes(), weight, bias, epsilon_).to(x.scalar_type());
}

void LayerNormImpl::to(torch::Dtype type, bool non_blocking) {
  if (type != torch::kFloat32 && type != torch::kFloat64) return;
  torch::nn::Module::to(type, non_blocking);
}

void LayerNormImpl::to(torch::Device device, bool non_blocking) {
  torch::nn::Module::to(device, non_blocking);
}

void LayerNormImpl::to(torch::Device device, torch::Dtype type, bool non_blocking) {
  to(device, non_blocking);
  to(type, non_blocking);
}

}  // namespace tutti::models
