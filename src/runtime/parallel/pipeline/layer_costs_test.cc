#include "runtime/parallel/pipeline/layer_costs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "runtime/device/cpu/kept_memory.h"

namespace tutti::parallel {
namespace {

using models::Fork;
using models::Layer;
using testing::HasSubstr;

constexpr int64_t kFloat = sizeof(float);

// A layer of some modules whose output is one tensor.
Layer LayerOf(std::string name, std::vector<std::shared_ptr<torch::nn::Module>> modules,
              std::function<torch::Tensor(const torch::Tensor&)> body) {
  Layer layer{.name = std::move(name)};
  for (auto& module : modules) layer.modules.emplace_back("m", std::move(module));
  layer.forward = [body = std::move(body)](const Fork& input) -> Fork {
    const torch::Tensor output = body(input.main);
    return {output, output};
  };
  return layer;
}

std::vector<LayerCost> Measured(const std::vector<Layer>& layers, const torch::Tensor& inputs,
                                bool bf16 = false) {
  const auto costs = MeasureLayers(layers, inputs, bf16, 2);
  EXPECT_EQ(costs.status(), absl::OkStatus());
  return costs.value_or(std::vector<LayerCost>(layers.size()));
}

TEST(MeasureLayers, CountsWhatTheForwardPassKeeps) {
  torch::nn::Linear first(32, 48), second(48, 40), third(40, 16);
  torch::nn::Conv2d convolution(torch::nn::Conv2dOptions(1, 3, 3).padding(1));
  const auto costs = Measured(
      {LayerOf("relu", {first.ptr()}, [=](torch::Tensor x) mutable { return first(x).relu(); }),
       LayerOf("two", {second.ptr(), third.ptr()},
               [=](torch::Tensor x) mutable { return third(second(x).relu()); }),
       LayerOf("view", {},
               [](torch::Tensor x) {
                 return x.view({64, 1, 4, 4});
               }),
       LayerOf("conv", {convolution.ptr()},
               [=](torch::Tensor x) mutable { return convolution(x); })},
      torch::randn({64, 32}));
  // What linear gives is freed when its ReLU is there. The input is not counted.
  EXPECT_EQ(costs[0].name, "relu");
  EXPECT_EQ(costs[0].kept_bytes, 64 * 48 * kFloat);
  EXPECT_EQ(costs[0].output_bytes, 64 * 48 * kFloat);
  EXPECT_EQ(costs[1].kept_bytes, 64 * (40 + 16) * kFloat);
  EXPECT_EQ(costs[1].output_bytes, 64 * 16 * kFloat);
  EXPECT_EQ(costs[2].kept_bytes, 0);
  EXPECT_EQ(costs[2].output_bytes, 64 * 16 * kFloat);
  EXPECT_EQ(costs[3].kept_bytes, 64 * 3 * 16 * kFloat);
}

TEST(MeasureLayers, CountsBlocksOfMemoryThatIsKeptForOtherTensors) {
  device::KeepLargeBlocks();
  torch::nn::Linear linear(16, 1024);
  const auto costs = Measured(
      {LayerOf("fc", {linear.ptr()}, [=](torch::Tensor x) mutable { return linear(x).relu(); })},
      torch::randn({600, 16}));
  EXPECT_EQ(costs[0].kept_bytes, 600 * 1024 * kFloat);  // no whole number of MiB
}

// In the backward pass: the gradient of the output, of ReLU's input, and of the weights.
TEST(MeasureLayers, CountsWhatALayerNeedsWhileItComputes) {
  torch::nn::Linear linear(1000, 1000);
  const auto costs = Measured(
      {LayerOf("fc", {linear.ptr()}, [=](torch::Tensor x) mutable { return linear(x).relu(); })},
      torch::randn({4, 1000}));
  EXPECT_GE(costs[0].working_bytes, (1000 + 2 * 4) * 1000 * kFloat);
  EXPECT_LE(costs[0].working_bytes, 2 * (1000 + 2 * 4) * 1000 * kFloat);
}

TEST(MeasureLayers, KeepsHalfAsMuchUnderAutocast) {
  torch::nn::Linear linear(32, 48);
  const auto costs =
      Measured({LayerOf("fc", {linear.ptr()}, [=](torch::Tensor x) mutable { return linear(x); })},
               torch::randn({64, 32}), /*bf16=*/true);
  EXPECT_EQ(costs[0].output_bytes, 64 * 48 * 2);
  EXPECT_EQ(costs[0].kept_bytes, 64 * 48 * 2 + 64 * 32 * 2);  // and the input in bf16
}

TEST(MeasureLayers, CountsMemoryThatBothPartsOfAnOutputShareOnce) {
  const auto scale = torch::ones({1}, torch::requires_grad());
  const auto layer_of = [&](auto shortcut) {
    Layer layer{.name = "fork", .parameters = {{"scale", scale}}};
    layer.forward = [=](const Fork& input) -> Fork {
      const torch::Tensor main = input.main * scale;
      return {main, shortcut(main)};
    };
    return layer;
  };
  const auto inputs = torch::randn({10, 10});
  const auto costs = Measured({layer_of([](torch::Tensor x) { return x; }),
                               layer_of([](torch::Tensor x) { return x.view({100}); }),
                               layer_of([](torch::Tensor) { return torch::Tensor(); })},
                              inputs);
  for (const LayerCost& cost : costs) EXPECT_EQ(cost.output_bytes, 100 * kFloat);
  const auto apart = Measured({layer_of([](torch::Tensor x) { return x * 2; })}, inputs);
  EXPECT_EQ(apart[0].output_bytes, 200 * kFloat);
  EXPECT_FALSE(scale.grad().defined());  // though three layers had it
}

TEST(MeasureLayers, PassesBothPartsOfAnOutputToTheNextLayer) {
  torch::nn::Linear linear(4, 4);
  Layer first = LayerOf("first", {linear.ptr()}, nullptr);
  first.forward = [=](const Fork& input) mutable -> Fork {
    EXPECT_TRUE(input.main.is_same(input.shortcut));
    EXPECT_FALSE(input.main.requires_grad());
    const torch::Tensor main = linear(input.main);
    return {main, main * 3};
  };
  int passes = 0;
  Layer second{.name = "second"};
  second.forward = [&](const Fork& input) -> Fork {
    EXPECT_TRUE(torch::equal(input.main * 3, input.shortcut));
    EXPECT_TRUE(input.main.is_leaf() && input.shortcut.is_leaf());
    EXPECT_TRUE(input.main.requires_grad() && input.shortcut.requires_grad());
    ++passes;
    return {input.main + input.shortcut, {}};
  };
  Measured({first, second}, torch::randn({2, 4}));
  EXPECT_EQ(passes, 1 + 2);
}

TEST(MeasureLayers, TellsParametersFromWhatIsNotTrained) {
  torch::nn::Linear trained(4, 8), frozen(8, 2);
  torch::nn::BatchNorm1d norm(2);
  for (torch::Tensor& parameter : frozen->parameters()) parameter.set_requires_grad(false);
  Layer layer = LayerOf("all", {trained.ptr(), frozen.ptr(), norm.ptr()},
                        [=](torch::Tensor x) mutable { return norm(frozen(trained(x))); });
  layer.parameters.emplace_back("token", torch::zeros({5}, torch::requires_grad()));
  const auto costs = Measured({layer}, torch::randn({3, 4}));
  EXPECT_EQ(costs[0].parameter_bytes, (4 * 8 + 8 + 2 + 2 + 5) * kFloat);
  // Frozen ones, the running statistics, and an int64 that counts batches.
  EXPECT_EQ(costs[0].buffer_bytes, (8 * 2 + 2 + 2 + 2) * kFloat + 8);
}

TEST(MeasureLayers, ALayerThatTrainsNothingTakesNoTimeBackward) {
  torch::nn::Linear frozen(8, 8);
  for (torch::Tensor& parameter : frozen->parameters()) parameter.set_requires_grad(false);
  std::vector<Layer> layers = {
      LayerOf("fc", {frozen.ptr()}, [=](torch::Tensor x) mutable { return frozen(x); })};
  const auto costs = Measured(layers, torch::randn({4, 8}));
  EXPECT_GT(costs[0].forward, 0);
  EXPECT_EQ(costs[0].backward, 0);
  EXPECT_EQ(costs[0].kept_bytes, 4 * 8 * kFloat);
}

TEST(MeasureLayers, MeasuresSecondsOfBothPasses) {
  torch::nn::Linear large(512, 2048);
  const auto costs =
      Measured({LayerOf("view", {},
                        [](torch::Tensor x) {
                          return x.view({512, 512});
                        }),
                LayerOf("large", {large.ptr()}, [=](torch::Tensor x) mutable { return large(x); })},
               torch::randn({512, 512}));
  EXPECT_GT(costs[1].forward, costs[0].forward);
  EXPECT_GT(costs[1].backward, costs[0].backward);
}

// A network whose passes change statistics, gradients and random numbers.
class MeasuredState : public testing::Test {
 protected:
  void SetUp() override {
    torch::manual_seed(3);
    gradient_ = torch::randn({8, 4});
    linear_->weight.mutable_grad() = gradient_;
    for (const auto& module : modules_) {
      for (const auto& tensor : module->parameters()) before_.push_back(tensor.detach().clone());
      for (const auto& tensor : module->buffers()) before_.push_back(tensor.clone());
    }
    gradient_before_ = gradient_.clone();
    torch::manual_seed(5);
    next_random_ = torch::rand({4});
    torch::manual_seed(5);
  }

  void ExpectAsBefore() {
    EXPECT_TRUE(torch::equal(torch::rand({4}), next_random_));
    size_t i = 0;
    for (const auto& module : modules_) {
      for (const auto& tensor : module->parameters()) {
        EXPECT_TRUE(torch::equal(tensor, before_[i++]));
      }
      for (const auto& tensor : module->buffers()) {
        EXPECT_TRUE(torch::equal(tensor, before_[i++]));
      }
    }
    EXPECT_TRUE(linear_->weight.grad().is_same(gradient_));
    EXPECT_TRUE(torch::equal(gradient_, gradient_before_));
    EXPECT_FALSE(linear_->bias.grad().defined());
    EXPECT_FALSE(norm_->weight.grad().defined());
  }

  Layer Network() {
    return LayerOf("network", modules_, [this](torch::Tensor x) {
      ++passes_;
      const auto output = dropout_(norm_(linear_(x)));
      changed_ |= !torch::equal(norm_->running_mean, torch::zeros({8}));
      if (throws_) throw std::runtime_error("a layer that fails");
      return output;
    });
  }

  torch::nn::Linear linear_{4, 8};
  torch::nn::BatchNorm1d norm_{8};
  torch::nn::Dropout dropout_{0.5};
  std::vector<std::shared_ptr<torch::nn::Module>> modules_ = {linear_.ptr(), norm_.ptr(),
                                                              dropout_.ptr()};
  torch::Tensor gradient_, gradient_before_, next_random_;
  std::vector<torch::Tensor> before_;
  int passes_ = 0;
  bool changed_ = false, throws_ = false;
};

TEST_F(MeasuredState, IsAsBefore) {
  Measured({Network()}, torch::ones({16, 4}));
  EXPECT_EQ(passes_, 1 + 2);
  EXPECT_TRUE(changed_);
  ExpectAsBefore();
}

TEST_F(MeasuredState, IsAsBeforeAfterAnErrorWhichNamesTheLayer) {
  throws_ = true;
  const auto status = MeasureLayers({Network()}, torch::ones({16, 4}), false, 2).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(status.message(), "measure layer network: a layer that fails");
  EXPECT_TRUE(changed_);
  ExpectAsBefore();
}

TEST(MeasureLayers, TellsWhichLayerLibtorchRefuses) {
  torch::nn::Linear first(4, 8), second(9, 2);
  const auto status =
      MeasureLayers(
          {LayerOf("first", {first.ptr()}, [=](torch::Tensor x) mutable { return first(x); }),
           LayerOf("second", {second.ptr()}, [=](torch::Tensor x) mutable { return second(x); })},
          torch::randn({3, 4}), false, 1)
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("measure layer second: "));
}

TEST(MeasureLayers, RefusesNoLayersAndNoRepetitions) {
  const auto inputs = torch::randn({1, 1});
  EXPECT_EQ(MeasureLayers({}, inputs, false, 1).status().code(),
            absl::StatusCode::kInvalidArgument);
  const auto status =
      MeasureLayers({LayerOf("id", {}, [](torch::Tensor x) { return x; })}, inputs, false, 0)
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "layers are measured once or more, not 0 times");
}

}  // namespace
}  // namespace tutti::parallel
