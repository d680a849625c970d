// A small network and its data, for tests of strategies whose ranks each have all of it.
#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include <memory>
#include <vector>

#include "base/test_patience.h"
#include "runtime/models/model.h"
#include "runtime/parallel/optimizer.h"
#include "runtime/parallel/strategy.h"

namespace tutti::parallel {

inline base::Deadline SoonOfATest() {
  return base::Deadline::After(base::Patient(absl::Seconds(60)));
}

// Two linear layers in fp64, [n, 6] -> [n, 5], large enough for several buckets of 256 bytes.
struct TwoLayers : models::ModelImpl {
  explicit TwoLayers(bool has_norm = false) : has_norm(has_norm) {
    first = register_module("first", torch::nn::Linear(6, 8));
    if (has_norm) norm = register_module("norm", torch::nn::BatchNorm1d(8));
    last = register_module("last", torch::nn::Linear(8, 5));
    to(torch::kFloat64);
    torch::NoGradGuard no_grad;
    for (torch::Tensor& each : parameters()) {
      each.copy_(torch::arange(each.numel(), torch::kFloat64).view(each.sizes()).sin());
    }
  }
  torch::Tensor forward(torch::Tensor x) override {
    x = first(x);
    return last(has_norm ? norm(x) : torch::relu(x));
  }
  const bool has_norm;
  torch::nn::Linear first = nullptr, last = nullptr;
  torch::nn::BatchNorm1d norm = nullptr;
};

// The samples of a step, [n, 6] and their classes.
inline Batch BatchOfStep(int64_t step, int64_t samples) {
  const torch::Tensor inputs =
      torch::arange(samples * 6, torch::kFloat64).view({samples, 6}).mul(0.7 + step).cos();
  return {{inputs}, (torch::arange(samples) * 3 + step).remainder(5)};
}

// Gradient descent as it is written down, p -= rate * g, with nothing kept.
class PlainDescent final : public Optimizer {
 public:
  explicit PlainDescent(const Buckets& buckets) : buckets_(buckets) {}
  void Step(double learning_rate) override {
    torch::NoGradGuard no_grad;
    for (const auto& bucket : buckets_) {
      bucket->values().sub_(bucket->gradients(), /*alpha=*/learning_rate);
    }
  }
  State state() override { return {}; }

 private:
  const Buckets& buckets_;
};

inline OptimizerFactory PlainDescents() {
  return [](const Buckets& buckets, const models::Model&) {
    return std::make_unique<PlainDescent>(buckets);
  };
}

inline std::vector<torch::Tensor> ValuesOf(const models::Model& model) {
  std::vector<torch::Tensor> values;
  for (const torch::Tensor& each : model->parameters()) values.push_back(each.detach().clone());
  return values;
}

}  // namespace tutti::parallel
