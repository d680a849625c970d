#include <ATen/Parallel.h>

#include "runtime/device/device.h"
#include "runtime/train/optimizer/optimizer.h"

namespace tutti::train {
namespace {

// Without kernels of tutti's own, where a bucket may be spoiled: factors of 0 and 1 for no and yes.
void UpdateByLibtorch(parallel::Bucket& bucket, torch::Tensor& velocity, const torch::Tensor& rate,
                      const SgdCoefficients& c) {
  const torch::Tensor wanted = bucket.spoiled.eq(0);
  const torch::Tensor gradient = bucket.gradients().add(bucket.values(), /*alpha=*/c.weight_decay);
  const torch::Tensor next = velocity.mul(c.momentum).add_(gradient);
  const torch::Tensor step = c.nesterov ? gradient.add(next, /*alpha=*/c.momentum) : next;
  velocity.copy_(torch::where(wanted, next, velocity));
  bucket.values().copy_(torch::where(wanted, bucket.values() - rate * step, bucket.values()));
  if (bucket.copy.defined()) bucket.copy.copy_(bucket.values());
}

}  // namespace

Sgd::Sgd(const Buckets& buckets, const SgdCoefficients& coefficients, Decay decay)
    : buckets_(buckets), coefficients_(coefficients) {
  for (const auto& bucket : buckets_) {
    velocities_.push_back(torch::zeros_like(bucket->values()));
    stretches_.push_back(StretchesOf(*bucket, decay));
    for (const Stretch& stretch : stretches_.back()) {
      if (stretch.decays) continue;
      spared_.push_back(bucket->values().slice(0, stretch.begin, stretch.end));
      spared_gradients_.push_back(bucket->gradients().slice(0, stretch.begin, stretch.end));
    }
  }
  if (velocities_[0].is_cuda()) rate_ = torch::zeros({1}, velocities_[0].options());
}

template <typename T>
void Sgd::StepOnCpu(size_t i) {
  parallel::Bucket& bucket = *buckets_[i];
  for (const Stretch& stretch : stretches_[i]) {
    SgdCoefficients c = coefficients_;
    if (!stretch.decays) c.weight_decay = 0;
    SgdUpdate(bucket.values().mutable_data_ptr<T>() + stretch.begin,
              velocities_[i].mutable_data_ptr<T>() + stretch.begin,
              bucket.gradients().const_data_ptr<T>() + stretch.begin,
              static_cast<size_t>(stretch.end - stretch.begin), c, at::get_num_threads());
  }
}

void Sgd::Step(double learning_rate) {
  coefficients_.learning_rate = learning_rate;
  if (rate_.defined()) return StepOnGpu();
  for (size_t i = 0; i < buckets_.size(); ++i) {
    if (velocities_[i].scalar_type() == torch::kFloat64) {
      StepOnCpu<double>(i);
    } else {
      StepOnCpu<float>(i);
    }
  }
}

void Sgd::StepOnGpu() {
  rate_.fill_(coefficients_.learning_rate);
  torch::NoGradGuard no_grad;
  // The pass over a whole bucket adds the decay again: a launch for each stretch would cost more.
  if (!spared_.empty()) {
    torch::_foreach_add_(spared_gradients_, spared_, -coefficients_.weight_decay);
  }
  for (size_t i = 0; i < buckets_.size(); ++i) {
    parallel::Bucket& bucket = *buckets_[i];
    if (device::Kernels() == nullptr) {
      UpdateByLibtorch(bucket, velocities_[i], rate_, coefficients_);
      continue;
    }
    device::Kernels()->SgdUpdate({bucket.values(), velocities_[i], bucket.gradients(), bucket.copy,
                                  rate_, bucket.spoiled, coefficients_.momentum,
                                  coefficients_.weight_decay, coefficients_.nesterov});
  }
}

std::map<std::string, torch::Tensor> Sgd::State() {
  std::map<std::string, torch::Tensor> state;
  AddByName("momentum.", buckets_, velocities_, state);
  return state;
}

}  // namespace tutti::train
