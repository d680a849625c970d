#include "runtime/train/optimizer/optimizer.h"

namespace tutti::train {
namespace {

template <typename T>
void Update(parallel::Bucket& bucket, torch::Tensor& velocity, const SgdCoefficients& c) {
  SgdUpdate(bucket.values().mutable_data_ptr<T>(), velocity.mutable_data_ptr<T>(),
            bucket.gradients().const_data_ptr<T>(), static_cast<size_t>(bucket.size()), c);
}

}  // namespace

Sgd::Sgd(const Buckets& buckets, const SgdCoefficients& coefficients)
    : buckets_(buckets), coefficients_(coefficients) {
  for (const auto& bucket : buckets_) velocities_.push_back(torch::zeros_like(bucket->values()));
}

void Sgd::Step(double learning_rate) {
  coefficients_.learning_rate = learning_rate;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    if (velocities_[i].scalar_type() == torch::kFloat64) {
      Update<double>(*buckets_[i], velocities_[i], coefficients_);
    } else {
      Update<float>(*buckets_[i], velocities_[i], coefficients_);
    }
  }
}

std::map<std::string, torch::Tensor> Sgd::State() {
  std::map<std::string, torch::Tensor> state;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    for (const auto& slot : buckets_[i]->slots()) {
      state["momentum." + slot.name] = parallel::Bucket::View(velocities_[i], slot);
    }
  }
  return state;
}

}  // namespace tutti::train
