// A model whose layers sleep in place of computing, so that stages that share a core behave as if
// each had one of its own. Thread-compatible.
#pragma once

#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/module.h>
#include <torch/types.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "runtime/models/layers/layered_model.h"

namespace tutti {

struct SleepingOptions {
  int layers = 1;
  double forward = 0, backward = 0;  // seconds of a layer with one micro-batch
  int64_t samples = 0;               // of which that is so, and of others as many times; 0: always
  int64_t slow = -1;                 // the layer that takes twice as long
  int64_t width = 1000;              // what a layer takes and returns of a sample; the classes
};

inline void SleepFor(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

// x times a parameter of one element.
class SlowProduct : public torch::autograd::Function<SlowProduct> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x,
                               const torch::Tensor& factor, double forward, double backward) {
    SleepFor(forward);
    context->save_for_backward({x, factor});
    context->saved_data["backward"] = backward;
    return x * factor;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    SleepFor(context->saved_data["backward"].toDouble());
    const auto saved = context->get_saved_variables();
    const torch::Tensor& gradient = gradients[0];
    return {gradient * saved[1], (gradient * saved[0]).sum().view({1}), {}, {}};
  }
};

inline models::Model MakeSleepingModel(const SleepingOptions& options) {
  const auto model = std::make_shared<models::LayeredModel>();
  for (int i = 0; i < options.layers; ++i) {
    const std::string name = "layer" + std::to_string(i);
    const torch::Tensor factor = torch::ones({1}).requires_grad_(true);
    const double layer_times = i == options.slow ? 2 : 1;
    const auto forward = [factor, options, layer_times](const models::Fork& x) -> models::Fork {
      const double times =
          layer_times * (options.samples == 0 ? 1
                                              : static_cast<double>(x.main.size(0)) /
                                                    static_cast<double>(options.samples));
      const torch::Tensor y =
          SlowProduct::apply(x.main, factor, times * options.forward, times * options.backward);
      return {y, y};
    };
    model->Append({.name = name,
                   .modules = {},
                   .parameters = {{name + ".factor", factor}},
                   .forward = forward});
  }
  return model;
}

}  // namespace tutti
