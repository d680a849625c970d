#include "runtime/models/networks/gradient_predictor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/functional/loss.h>

namespace tutti::models {
namespace {

using testing::HasSubstr;
using torch::Tensor;

TEST(GradientPredictor, AnswersInTheActivationsShapeAndBeginsAtZero) {
  const std::vector<Tensor> activations = {torch::randn({3, 8}), torch::randn({3, 5, 8}),
                                           torch::randn({3, 8, 6, 4}),
                                           torch::randn({3, 8, 6, 4}, torch::kFloat64)};
  const Tensor targets = torch::tensor({0, 3, 1});
  for (const Tensor& activation : activations) {
    for (const absl::string_view kind : PredictorKinds()) {
      const PredictorSpec spec{.kind = std::string(kind), .classes = 4};
      const auto predictor = MakePredictor(spec, activation, 1, "cut");
      ASSERT_TRUE(predictor.ok()) << predictor.status();
      const Tensor guess = (*predictor)->Outputs({activation, targets})[0];
      EXPECT_EQ(guess.sizes(), activation.sizes()) << kind;
      EXPECT_EQ(guess.scalar_type(), activation.scalar_type()) << kind;
      EXPECT_EQ(guess.count_nonzero().item<int64_t>() == 0, kind != "random") << kind;
    }
  }
}

// The formula, of images: W2 * relu(W1 * x + b1 + V mean(x) + c + labels[target]) + b2.
TEST(GradientPredictor, IsTwoConvolutionsOfWhichTheFirstHearsTheLabel) {
  const Tensor activation = torch::randn({2, 4, 5, 5}, torch::kFloat64);
  const PredictorSpec spec{.kind = "random", .width = 3, .classes = 2};
  const auto predictor = MakePredictor(spec, activation, 1, "cut");
  ASSERT_TRUE(predictor.ok());
  torch::NoGradGuard no_grad;
  auto parts = (*predictor)->named_parameters();
  parts["labels"].copy_(torch::arange(6, torch::kFloat64).view({2, 3}));
  const Tensor targets = torch::tensor({1, 0});
  const Tensor told = parts["labels"].index_select(0, targets).view({2, 3, 1, 1});
  const Tensor hidden = torch::conv2d(activation, parts["first.convolution.weight"],
                                      parts["first.convolution.bias"], 1, 1);
  const Tensor everywhere =
      torch::linear(activation.mean({2, 3}), parts["everywhere.weight"], parts["everywhere.bias"]);
  const Tensor expected =
      torch::conv2d(torch::relu(hidden + everywhere.view({2, 3, 1, 1}) + told),
                    parts["second.convolution.weight"], parts["second.convolution.bias"], 1, 1);
  EXPECT_TRUE(torch::equal((*predictor)->Outputs({activation, targets})[0], expected));
  // Shares of classes, as mixed images have them, are told alike.
  const Tensor shares = torch::eye(2, torch::kFloat64).index_select(0, targets);
  EXPECT_TRUE(torch::equal((*predictor)->Outputs({activation, shares})[0], expected));
}

// Autograd says the same of its loss.
TEST(GradientPredictor, OfAnAuxiliaryClassifierIsTheGradientOfItsLoss) {
  const Tensor labels = torch::tensor({0, 3, 1});
  for (const Tensor& values :
       {torch::randn({3, 8}), torch::randn({3, 5, 8}), torch::randn({3, 8, 6, 4})}) {
    const Tensor activation = values.to(torch::kFloat64).requires_grad_(true);
    const auto predictor = *MakePredictor({.kind = "auxiliary", .classes = 4}, activation, 1, "a");
    {
      torch::NoGradGuard no_grad;
      for (Tensor& each : predictor->parameters()) each.copy_(torch::randn_like(each));
    }
    const auto parts = predictor->named_parameters();
    const Tensor mean = values.dim() == 2
                            ? activation
                            : activation.mean(values.dim() == 3 ? std::vector<int64_t>{1}
                                                                : std::vector<int64_t>{2, 3});
    const Tensor logits = torch::linear(mean, parts["classifier.weight"], parts["classifier.bias"]);
    const Tensor shares = torch::eye(4, torch::kFloat64).index_select(0, labels);
    for (const Tensor& targets : {labels, 0.9 * shares + 0.025}) {
      const auto loss = torch::nn::functional::cross_entropy(
          logits, targets, torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum));
      const auto outputs = predictor->Outputs({activation, targets});
      EXPECT_TRUE(torch::allclose(outputs[1], loss));
      const Tensor gradient = torch::autograd::grad({loss}, {activation}, {}, true)[0];
      EXPECT_TRUE(torch::allclose(outputs[0], gradient)) << values.sizes();
    }
  }
}

TEST(GradientPredictor, BeginsWithWhatSeedAndNameSay) {
  const Tensor activation = torch::zeros({1, 8});
  const auto weight = [&](uint64_t seed, const std::string& name) {
    return (*MakePredictor({.kind = "convolutions"}, activation, seed, name))
        ->named_parameters()["first.linear.weight"];
  };
  EXPECT_TRUE(torch::equal(weight(1, "a"), weight(1, "a")));
  EXPECT_FALSE(torch::equal(weight(1, "a"), weight(2, "a")));
  EXPECT_FALSE(torch::equal(weight(1, "a"), weight(1, "b")));
  EXPECT_EQ(weight(1, "a").size(0), 2);  // a quarter of the channels
}

TEST(GradientPredictor, SaysWhatItDoesNotFit) {
  EXPECT_THAT(MakePredictor({.kind = "magic"}, torch::zeros({1, 8}), 1, "a").status().message(),
              HasSubstr("there are linear, convolutions, auxiliary, zero, random"));
  EXPECT_THAT(MakePredictor({}, torch::zeros({8}), 1, "a").status().message(),
              HasSubstr("no predictor fits an activation of 1 dimensions"));
  EXPECT_THAT(MakePredictor({.kind = "auxiliary"}, torch::zeros({1, 8}), 1, "a").status().message(),
              HasSubstr("an auxiliary classifier needs the labels"));
}

}  // namespace
}  // namespace tutti::models
