#include "runtime/train/optimizer/sgd.h"

#include <ATen/Parallel.h>

namespace tutti::train {
Sgd::Sgd(const Buckets& buckets, const SgdCoefficients& coefficients, Decay decay)
    : buckets_(buckets),
      coefficients_(coefficients),
      stretches_(StretchesOf(buckets, decay)),
      gpu_(std::make_unique<OnGpu>(buckets, stretches_)) {
  for (const auto& bucket : buckets_) velocities_.push_back(torch::zeros_like(bucket->values()));
}

Sgd::~Sgd() = default;

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

// Nothing where the device has found a gradient that is not finite.
void Sgd::StepByLibtorch(size_t i) {
  const SgdCoefficients& c = coefficients_;
  parallel::Bucket& bucket = *buckets_[i];
  const torch::Tensor wanted = bucket.found_nonfinite.eq(0), gradient = bucket.gradients().clone();
  for (const Stretch& stretch : stretches_[i]) {
    if (!stretch.decays) continue;
    gradient.slice(0, stretch.begin, stretch.end)
        .add_(bucket.values().slice(0, stretch.begin, stretch.end), /*alpha=*/c.weight_decay);
  }
  const torch::Tensor next = velocities_[i].mul(c.momentum).add_(gradient);
  const torch::Tensor step = c.nesterov ? gradient.add(next, /*alpha=*/c.momentum) : next;
  const torch::Tensor values = bucket.values().sub(step, /*alpha=*/c.learning_rate);
  velocities_[i].copy_(torch::where(wanted, next, velocities_[i]));
  bucket.values().copy_(torch::where(wanted, values, bucket.values()));
  if (bucket.copy.defined()) bucket.copy.copy_(bucket.values());
}

void Sgd::Step(double learning_rate) {
  torch::NoGradGuard no_grad;
  coefficients_.learning_rate = learning_rate;
  const SgdCoefficients& c = coefficients_;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    if (gpu_->kernels() != nullptr) {
      gpu_->kernels()->Sgd({gpu_->TensorsOf(i, learning_rate, c.weight_decay), velocities_[i],
                            c.momentum, c.nesterov});
    } else if (buckets_[i]->found_nonfinite.defined()) {
      StepByLibtorch(i);
    } else if (velocities_[i].scalar_type() == torch::kFloat64) {
      StepOnCpu<double>(i);
    } else {
      StepOnCpu<float>(i);
    }
  }
}

std::map<std::string, torch::Tensor> Sgd::State() {
  std::map<std::string, torch::Tensor> state;
  AddByName("momentum.", buckets_, velocities_, state);
  return state;
}

}  // namespace tutti::train
