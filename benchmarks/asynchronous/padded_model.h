// Linear layers of one size, whose pass takes a given time: what it did not compute it sleeps.
// Thread-compatible.
#pragma once

#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/functional/linear.h>
#include <torch/types.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "runtime/models/layers/layered_model.h"

namespace tutti {

struct PaddedOptions {
  int64_t layers = 8, width = 184;  // values in and out
  double seconds = 0.1;             // of a forward and a backward pass together
};

// The identity, at whose gradient, the last that a backward pass comes to, the time is waited for.
class Padding : public torch::autograd::Function<Padding> {
 public:
  using Clock = std::chrono::steady_clock;

  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x,
                               double seconds) {
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(seconds));
    context->saved_data["end"] = static_cast<int64_t>(end.time_since_epoch().count());
    return x.view_as(x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const Clock::duration end(context->saved_data["end"].toInt());
    std::this_thread::sleep_until(Clock::time_point(end));
    return {gradients[0], {}};
  }
};

inline models::Model MakePaddedModel(const PaddedOptions& options) {
  const auto model = std::make_shared<models::LayeredModel>();
  model->Append({.name = "padding",
                 .modules = {},
                 .parameters = {},
                 .forward = [options](const models::Fork& x) -> models::Fork {
                   const torch::Tensor begin = x.main.detach().requires_grad_(true);
                   const torch::Tensor y = Padding::apply(begin, options.seconds);
                   return {y, y};
                 }});
  for (int64_t i = 0; i < options.layers; ++i) {
    const std::string name = "layer" + std::to_string(i);
    const torch::Tensor weight = torch::eye(options.width).requires_grad_(true);
    model->Append({.name = name,
                   .modules = {},
                   .parameters = {{name + ".weight", weight}},
                   .forward = [weight](const models::Fork& x) -> models::Fork {
                     const torch::Tensor y = torch::nn::functional::linear(x.main, weight);
                     return {y, y};
                   }});
  }
  return model;
}

}  // namespace tutti
