#include "runtime/train/optimizer/adam_moments.h"

#include <ATen/Parallel.h>

#include <cmath>
#include <utility>

#include "runtime/parallel/flat_model.h"

namespace tutti::train {

AdamMoments::AdamMoments(const Buckets& buckets, const AdamCoefficients& coefficients,
                         std::vector<std::vector<ParameterRange>> ranges)
    : buckets_(buckets),
      coefficients_(coefficients),
      updates_(torch::zeros({1}, torch::kInt64)),
      ranges_(std::move(ranges)),
      gpu_(std::make_unique<GpuKernels>(buckets, ranges_)) {
  for (const auto& bucket : buckets_) {
    first_.push_back(torch::zeros_like(bucket->values()));
    second_.push_back(torch::zeros_like(bucket->values()));
  }
}

AdamMoments::~AdamMoments() = default;

template <typename T>
void AdamMoments::StepOnCpu(size_t i, int64_t t) {
  const int threads = at::get_num_threads();
  AdamCoefficients without_decay = coefficients_;
  without_decay.weight_decay = 0;
  for (const ParameterRange& range : ranges_[i]) {
    const torch::Tensor gradients = buckets_[i]->gradients();
    const Memory<T> m{buckets_[i]->values().mutable_data_ptr<T>() + range.begin,
                      first_[i].mutable_data_ptr<T>() + range.begin,
                      second_[i].mutable_data_ptr<T>() + range.begin,
                      gradients.const_data_ptr<T>() + range.begin,
                      static_cast<size_t>(range.end - range.begin)};
    if (range.decays) {
      Update(m, t, threads);
    } else {
      AdamUpdate(m.values, m.first, m.second, m.gradients, m.count, without_decay, t, threads);
    }
  }
}

// Nothing where the device has found a gradient that is not finite.
void AdamMoments::StepByLibtorch(size_t i, int64_t t) {
  const AdamCoefficients& c = coefficients_;
  parallel::Bucket& bucket = *buckets_[i];
  const torch::Tensor wanted = bucket.found_nonfinite.eq(0), gradient = bucket.gradients();
  const torch::Tensor first = first_[i].lerp(gradient, 1 - c.beta1);
  const torch::Tensor second =
      second_[i].mul(c.beta2).addcmul_(gradient, gradient, /*value=*/1 - c.beta2);
  const torch::Tensor size =
      second.sqrt().div_(std::sqrt(1 - std::pow(c.beta2, t))).add_(c.epsilon);
  const torch::Tensor values = Updated(i, first, size, t);
  first_[i].copy_(torch::where(wanted, first, first_[i]));
  second_[i].copy_(torch::where(wanted, second, second_[i]));
  bucket.values().copy_(torch::where(wanted, values, bucket.values()));
  if (bucket.copy.defined()) bucket.copy.copy_(bucket.values());
}

void AdamMoments::Step(double learning_rate) {
  torch::NoGradGuard no_grad;
  coefficients_.learning_rate = learning_rate;
  updates_.add_(1);
  const auto t = updates_.item<int64_t>();
  for (size_t i = 0; i < buckets_.size(); ++i) {
    if (gpu_->kernels() != nullptr) {
      const AdamCoefficients& c = coefficients_;
      UpdateOnGpu(*gpu_->kernels(), {gpu_->TensorsOf(i, learning_rate, c.weight_decay), first_[i],
                                     second_[i], c.beta1, c.beta2, c.epsilon, t});
    } else if (buckets_[i]->found_nonfinite.defined()) {
      StepByLibtorch(i, t);
    } else if (first_[i].scalar_type() == torch::kFloat64) {
      StepOnCpu<double>(i, t);
    } else {
      StepOnCpu<float>(i, t);
    }
  }
}

parallel::State AdamMoments::state() {
  parallel::State state = {{.name = "updates",
                            .tensor = updates_,
                            .part = parallel::StateTensor::Part::kRun,
                            .common = true}};
  parallel::AddByName("exp_avg.", buckets_, first_, state);
  parallel::AddByName("exp_avg_sq.", buckets_, second_, state);
  return state;
}

}  // namespace tutti::train
