#include "runtime/train/optimizer/momentum.h"

#include <ATen/Parallel.h>

#include <utility>

#include "runtime/parallel/flat_model.h"

namespace tutti::train {

Momentum::Momentum(const Buckets& buckets, const SgdCoefficients& coefficients,
                   std::vector<std::vector<ParameterRange>> ranges)
    : buckets_(buckets),
      coefficients_(coefficients),
      ranges_(std::move(ranges)),
      gpu_(std::make_unique<GpuKernels>(buckets, ranges_)) {
  for (const auto& bucket : buckets_) velocities_.push_back(torch::zeros_like(bucket->values()));
}

Momentum::~Momentum() = default;

template <typename T>
void Momentum::StepOnCpu(size_t i) {
  const int threads = at::get_num_threads();
  SgdCoefficients without_decay = coefficients_;
  without_decay.weight_decay = 0;
  for (const ParameterRange& range : ranges_[i]) {
    const torch::Tensor gradients = buckets_[i]->gradients();
    const Memory<T> memory{buckets_[i]->values().mutable_data_ptr<T>() + range.begin,
                           velocities_[i].mutable_data_ptr<T>() + range.begin,
                           gradients.const_data_ptr<T>() + range.begin,
                           static_cast<size_t>(range.end - range.begin)};
    if (range.decays) {
      Update(memory, threads);
    } else {
      SgdUpdate(memory.values, memory.velocities, memory.gradients, memory.count, without_decay,
                threads);
    }
  }
}

// Nothing where the device has found a gradient that is not finite.
void Momentum::StepByLibtorch(size_t i) {
  parallel::Bucket& bucket = *buckets_[i];
  const torch::Tensor wanted = bucket.found_nonfinite.eq(0);
  const Updated next = UpdateByLibtorch(i, velocities_[i]);
  velocities_[i].copy_(torch::where(wanted, next.velocities, velocities_[i]));
  bucket.values().copy_(torch::where(wanted, next.values, bucket.values()));
  if (bucket.copy.defined()) bucket.copy.copy_(bucket.values());
}

void Momentum::Step(double learning_rate) {
  torch::NoGradGuard no_grad;
  coefficients_.learning_rate = learning_rate;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    if (gpu_->kernels() != nullptr) {
      UpdateOnGpu(*gpu_->kernels(), gpu_->TensorsOf(i, learning_rate, coefficients_.weight_decay),
                  velocities_[i]);
    } else if (buckets_[i]->found_nonfinite.defined()) {
      StepByLibtorch(i);
    } else if (velocities_[i].scalar_type() == torch::kFloat64) {
      StepOnCpu<double>(i);
    } else {
      StepOnCpu<float>(i);
    }
  }
}

parallel::State Momentum::state() {
  parallel::State state;
  parallel::AddByName("momentum.", buckets_, velocities_, state);
  return state;
}

}  // namespace tutti::train
