#include "runtime/train/optimizer/weight_average.h"

namespace tutti::train {

WeightAverage::WeightAverage(std::unique_ptr<Optimizer> optimizer, const Buckets& buckets,
                             models::Model model, double decay)
    : optimizer_(std::move(optimizer)), buckets_(buckets), decay_(decay) {
  torch::NoGradGuard no_grad;
  for (const auto& bucket : buckets_) {
    whole_.push_back({bucket->values(), bucket->values().clone()});
  }
  for (const auto& buffer : model->named_buffers()) {
    if (!buffer.value().is_floating_point()) continue;
    whole_.push_back({buffer.value(), buffer.value().clone()});
    buffers_.push_back(buffer.key());
  }
}

void WeightAverage::Step(double learning_rate) {
  optimizer_->Step(learning_rate);
  torch::NoGradGuard no_grad;
  for (Averaged& averaged : whole_) averaged.average.lerp_(averaged.value, 1 - decay_);
}

void WeightAverage::Exchange() {
  torch::NoGradGuard no_grad;
  for (Averaged& averaged : whole_) {
    const torch::Tensor value = averaged.value.clone();
    averaged.value.copy_(averaged.average);
    averaged.average.copy_(value);
  }
  for (const auto& bucket : buckets_) {
    if (bucket->copy.defined()) bucket->copy.copy_(bucket->values());
  }
}

std::map<std::string, torch::Tensor> WeightAverage::State() {
  std::map<std::string, torch::Tensor> state = optimizer_->State();
  for (size_t i = 0; i < buckets_.size(); ++i) {
    for (const auto& slot : buckets_[i]->slots()) {
      state["average." + slot.name] = parallel::Bucket::View(whole_[i].average, slot);
    }
  }
  for (size_t i = 0; i < buffers_.size(); ++i) {
    state["average." + buffers_[i]] = whole_[buckets_.size() + i].average;
  }
  return state;
}

std::vector<torch::Tensor> WeightAverage::FlatState() {
  std::vector<torch::Tensor> state = optimizer_->FlatState();
  for (const Averaged& averaged : whole_) state.push_back(averaged.average);
  return state;
}

}  // namespace tutti::train
