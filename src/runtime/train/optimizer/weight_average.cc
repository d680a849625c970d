#include "runtime/train/optimizer/weight_average.h"

#include "runtime/parallel/flat_model.h"

namespace tutti::train {

WeightAverage::WeightAverage(std::unique_ptr<parallel::Optimizer> optimizer, const Buckets& buckets,
                             models::Model model, double decay)
    : optimizer_(std::move(optimizer)), buckets_(buckets), decay_(decay) {
  torch::NoGradGuard no_grad;
  for (const auto& bucket : buckets_) {
    values_.push_back(bucket->values());
  }
  for (const auto& buffer : model->named_buffers()) {
    if (!buffer.value().is_floating_point()) continue;
    values_.push_back(buffer.value());
    buffers_.push_back(buffer.key());
  }
  for (const torch::Tensor& value : values_) averages_.push_back(value.clone());
}

void WeightAverage::Step(double learning_rate) {
  optimizer_->Step(learning_rate);
  torch::NoGradGuard no_grad;
  torch::_foreach_lerp_(averages_, values_, 1 - decay_);  // on a GPU in a few kernels for all
}

void WeightAverage::SwapWeights() {
  torch::NoGradGuard no_grad;
  for (size_t i = 0; i < values_.size(); ++i) {
    const torch::Tensor value = values_[i].clone();
    values_[i].copy_(averages_[i]);
    averages_[i].copy_(value);
  }
  for (const auto& bucket : buckets_) {
    if (bucket->copy.defined()) bucket->copy.copy_(bucket->values());
  }
}

parallel::State WeightAverage::state() {
  parallel::State state = optimizer_->state();
  parallel::AddByName("average.", buckets_, averages_, state);
  for (size_t i = 0; i < buffers_.size(); ++i) {
    state.push_back({.name = "average." + buffers_[i],
                     .tensor = averages_[buckets_.size() + i],
                     .part = parallel::StateTensor::Part::kRun});
  }
  return state;
}

}  // namespace tutti::train
