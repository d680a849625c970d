#include "runtime/models/layers/batch_norm.h"

#include "runtime/models/layers/fused.h"
#include "runtime/models/layers/synchronized_batch_norm.h"

namespace tutti::models {

BatchNormImpl::BatchNormImpl(int64_t channels, double epsilon)
    : weight(register_parameter("weight", torch::ones(channels))),
      bias(register_parameter("bias", torch::zeros(channels))),
      running_mean(register_buffer("running_mean", torch::zeros(channels))),
      running_var(register_buffer("running_var", torch::ones(channels))),
      num_batches_tracked(register_buffer("num_batches_tracked", torch::zeros({}, torch::kInt64))),
      epsilon_(epsilon) {}

bool BatchNormImpl::Fuses(const torch::Tensor& images) const {
  return is_training() && !sum_ && weight.scalar_type() == torch::kFloat32 && CanFuse(images);
}

device::BatchNormTensors BatchNormImpl::Tensors() const {
  return {weight, bias, running_mean, running_var, num_batches_tracked, kMomentum, epsilon_};
}

Fork BatchNormImpl::Fused(const torch::Tensor& images, const torch::Tensor& residual, bool relu) {
  return FusedBatchNorm(images, residual, relu, Tensors());
}

torch::Tensor BatchNormImpl::Activated(const torch::Tensor& images) {
  if (Fuses(images)) return Fused(images, {}, /*relu=*/true).main;
  return forward(images).relu_();
}

Fork BatchNormImpl::Joined(const torch::Tensor& images, const torch::Tensor& residual) {
  if (Fuses(images)) return Fused(images, residual, /*relu=*/true);
  const torch::Tensor y = forward(images).add_(residual).relu_();
  return {y, y};
}

Fork BatchNormImpl::Joined(const torch::Tensor& images, BatchNormImpl& other,
                           const torch::Tensor& others) {
  if (Fuses(images) && other.Fuses(others) && CanFusePair(images, others)) {
    return FusedBatchNormPair(images, Tensors(), others, other.Tensors());
  }
  return Joined(images, other.forward(others));
}

torch::Tensor BatchNormImpl::forward(torch::Tensor images) {
  if (Fuses(images)) return Fused(images, {}, /*relu=*/false).main;
  if (is_training()) num_batches_tracked.add_(1);
  if (is_training() && sum_) {
    return SynchronizedBatchNorm(images, {weight, bias, running_mean, running_var, epsilon_}, sum_);
  }
  return torch::batch_norm(images, weight, bias, running_mean, running_var, is_training(),
                           kMomentum, epsilon_, /*cudnn_enabled=*/true);
}

void BatchNormImpl::to(torch::Dtype type, bool non_blocking) {
  if (type != torch::kFloat32 && type != torch::kFloat64) return;
  torch::nn::Module::to(type, non_blocking);
  num_batches_tracked.set_data(num_batches_tracked.to(torch::kInt64));
}

void BatchNormImpl::to(torch::Device device, bool non_blocking) {
  torch::nn::Module::to(device, non_blocking);
}

void BatchNormImpl::to(torch::Device device, torch::Dtype type, bool non_blocking) {
  to(device, non_blocking);
  to(type, non_blocking);
}

void UseSynchronizedBatchNorm(const Model& model, SumOverRanks sum) {
  for (const auto& module : model->modules()) {
    if (auto* norm = module->as<BatchNormImpl>()) norm->set_sum_over_ranks(sum);
  }
}

}  // namespace tutti::models
