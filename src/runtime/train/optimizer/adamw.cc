#include <ATen/Parallel.h>

#include <cmath>

#include "runtime/train/optimizer/optimizer.h"

namespace tutti::train {

AdamW::AdamW(const Buckets& buckets, const AdamCoefficients& coefficients, Decay decay)
    : buckets_(buckets), coefficients_(coefficients), updates_(torch::zeros({1}, torch::kInt64)) {
  for (const auto& bucket : buckets_) {
    first_.push_back(torch::zeros_like(bucket->values()));
    second_.push_back(torch::zeros_like(bucket->values()));
    stretches_.push_back(StretchesOf(*bucket, decay));
  }
}

template <typename T>
void AdamW::StepOnCpu(size_t i, int64_t t) {
  parallel::Bucket& bucket = *buckets_[i];
  for (const Stretch& stretch : stretches_[i]) {
    AdamCoefficients c = coefficients_;
    if (!stretch.decays) c.weight_decay = 0;
    AdamUpdate(bucket.values().mutable_data_ptr<T>() + stretch.begin,
               first_[i].mutable_data_ptr<T>() + stretch.begin,
               second_[i].mutable_data_ptr<T>() + stretch.begin,
               bucket.gradients().const_data_ptr<T>() + stretch.begin,
               static_cast<size_t>(stretch.end - stretch.begin), c, t, at::get_num_threads());
  }
}

// Nothing where the bucket is spoiled, which only its device knows.
void AdamW::StepByLibtorch(size_t i, int64_t t) {
  const AdamCoefficients& c = coefficients_;
  parallel::Bucket& bucket = *buckets_[i];
  const torch::Tensor wanted = bucket.spoiled.eq(0), gradient = bucket.gradients();
  const torch::Tensor first = first_[i].lerp(gradient, 1 - c.beta1);
  const torch::Tensor second =
      second_[i].mul(c.beta2).addcmul_(gradient, gradient, /*value=*/1 - c.beta2);
  const torch::Tensor size =
      second.sqrt().div_(std::sqrt(1 - std::pow(c.beta2, t))).add_(c.epsilon);
  torch::Tensor values = bucket.values().clone();
  for (const Stretch& stretch : stretches_[i]) {
    if (!stretch.decays) continue;
    values.slice(0, stretch.begin, stretch.end).mul_(1 - c.learning_rate * c.weight_decay);
  }
  values.addcdiv_(first, size, /*value=*/-c.learning_rate / (1 - std::pow(c.beta1, t)));
  first_[i].copy_(torch::where(wanted, first, first_[i]));
  second_[i].copy_(torch::where(wanted, second, second_[i]));
  bucket.values().copy_(torch::where(wanted, values, bucket.values()));
  if (bucket.copy.defined()) bucket.copy.copy_(bucket.values());
}

void AdamW::Step(double learning_rate) {
  torch::NoGradGuard no_grad;
  coefficients_.learning_rate = learning_rate;
  updates_.add_(1);
  const auto t = updates_.item<int64_t>();
  for (size_t i = 0; i < buckets_.size(); ++i) {
    if (buckets_[i]->spoiled.defined()) {
      StepByLibtorch(i, t);
    } else if (first_[i].scalar_type() == torch::kFloat64) {
      StepOnCpu<double>(i, t);
    } else {
      StepOnCpu<float>(i, t);
    }
  }
}

std::map<std::string, torch::Tensor> AdamW::State() {
  std::map<std::string, torch::Tensor> state = {{"updates", updates_}};
  for (size_t i = 0; i < buckets_.size(); ++i) {
    for (const auto& slot : buckets_[i]->slots()) {
      state["exp_avg." + slot.name] = parallel::Bucket::View(first_[i], slot);
      state["exp_avg_sq." + slot.name] = parallel::Bucket::View(second_[i], slot);
    }
  }
  return state;
}

std::vector<torch::Tensor> AdamW::FlatState() {
  std::vector<torch::Tensor> state = {updates_};
  state.insert(state.end(), first_.begin(), first_.end());
  state.insert(state.end(), second_.begin(), second_.end());
  return state;
}

}  // namespace tutti::train
