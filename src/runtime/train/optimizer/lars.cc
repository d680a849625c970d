#include "runtime/train/optimizer/lars.h"

#include <ATen/Parallel.h>

#include "runtime/train/optimizer/sgd_kernel.h"

namespace tutti::train {

Lars::Lars(const Buckets& buckets, const LarsCoefficients& coefficients)
    : buckets_(buckets),
      coefficients_(coefficients),
      layers_(LayersOf(buckets)),
      gpu_(std::make_unique<OnGpu>(buckets, StretchesOf(layers_))) {
  for (const auto& bucket : buckets_) velocities_.push_back(torch::zeros_like(bucket->values()));
}

Lars::~Lars() = default;

template <typename T>
void Lars::StepOnCpu(size_t i) {
  const LarsCoefficients& c = coefficients_;
  const int threads = at::get_num_threads();
  for (const Stretch& stretch : layers_[i].stretches()) {
    T* const values = buckets_[i]->values().mutable_data_ptr<T>() + stretch.begin;
    T* const velocities = velocities_[i].mutable_data_ptr<T>() + stretch.begin;
    const torch::Tensor flat = buckets_[i]->gradients();
    const T* const gradients = flat.const_data_ptr<T>() + stretch.begin;
    const auto count = static_cast<size_t>(stretch.end - stretch.begin);
    if (stretch.decays) {
      LarsUpdate(values, velocities, gradients, count, c, threads);
    } else {
      SgdUpdate(values, velocities, gradients, count,
                {.learning_rate = c.learning_rate, .momentum = c.momentum}, threads);
    }
  }
}

// Nothing where the device has found a gradient that is not finite.
void Lars::StepByLibtorch(size_t i) {
  const LarsCoefficients& c = coefficients_;
  Layers& layers = layers_[i];
  parallel::Bucket& bucket = *buckets_[i];
  const torch::Tensor wanted = bucket.found_nonfinite.eq(0);
  const torch::Tensor value = layers.Norms(bucket.values());
  const torch::Tensor gradient = layers.Norms(bucket.gradients());
  const torch::Tensor ratios =
      layers.Ratios(c.trust * value / (gradient + c.weight_decay * value), value, gradient);
  const torch::Tensor decayed =
      bucket.gradients() + layers.Spread(layers.Decays(c.weight_decay)) * bucket.values();
  const torch::Tensor next =
      velocities_[i].mul(c.momentum).addcmul_(layers.Spread(ratios), decayed);
  const torch::Tensor values = bucket.values().sub(next, /*alpha=*/c.learning_rate);
  velocities_[i].copy_(torch::where(wanted, next, velocities_[i]));
  bucket.values().copy_(torch::where(wanted, values, bucket.values()));
  if (bucket.copy.defined()) bucket.copy.copy_(bucket.values());
}

void Lars::Step(double learning_rate) {
  torch::NoGradGuard no_grad;
  coefficients_.learning_rate = learning_rate;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    if (gpu_->kernels() != nullptr) {
      const LarsCoefficients& c = coefficients_;
      gpu_->kernels()->Lars(
          {gpu_->TensorsOf(i, learning_rate, c.weight_decay), velocities_[i], c.momentum, c.trust});
    } else if (buckets_[i]->found_nonfinite.defined()) {
      StepByLibtorch(i);
    } else if (velocities_[i].scalar_type() == torch::kFloat64) {
      StepOnCpu<double>(i);
    } else {
      StepOnCpu<float>(i);
    }
  }
}

std::map<std::string, torch::Tensor> Lars::State() {
  std::map<std::string, torch::Tensor> state;
  AddByName("momentum.", buckets_, velocities_, state);
  return state;
}

}  // namespace tutti::train
