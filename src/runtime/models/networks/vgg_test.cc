#include "runtime/models/networks/vgg.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace tutti::models {
namespace {

TEST(Vgg, AStageKeepsTheSizeAndItsPoolHalvesIt) {
  const torch::NoGradGuard no_gradients;
  Chain stage;
  AppendVggStage(stage, 3, 8, 2);
  const torch::Tensor y = stage->forward(torch::randn({2, 3, 10, 7}));
  EXPECT_EQ(y.sizes(), torch::IntArrayRef({2, 8, 10, 7}));
  EXPECT_GE(y.min().item<float>(), 0) << "a ReLU comes last";
  EXPECT_EQ(HalvingPool()->forward(y).sizes(), torch::IntArrayRef({2, 8, 5, 3}));
  EXPECT_EQ(HalvingPool(/*round_up=*/true)->forward(y).sizes(), torch::IntArrayRef({2, 8, 5, 4}));
}

TEST(Vgg, AStageConvolvesAsOftenAsItSays) {
  Chain stage;
  AppendVggStage(stage, 3, 8, 3);
  int64_t count = 0;
  for (const torch::Tensor& parameter : stage->parameters()) count += parameter.numel();
  EXPECT_EQ(count, (3 * 9 * 8 + 8) + 2 * (8 * 9 * 8 + 8));
}

TEST(Vgg, HasThePublishedLayersAndNames) {
  const torch::NoGradGuard no_gradients;
  Vgg16 network(10);
  int64_t count = 0;
  for (const torch::Tensor& parameter : network.parameters()) count += parameter.numel();
  EXPECT_EQ(count, 138'357'544 - 4097 * 990) << "torchvision's, but for the number of classes";
  const auto parameters = network.named_parameters();
  EXPECT_EQ(parameters["features.0.weight"].sizes(), torch::IntArrayRef({64, 3, 3, 3}));
  EXPECT_EQ(parameters["features.28.weight"].sizes(), torch::IntArrayRef({512, 512, 3, 3}));
  EXPECT_EQ(parameters["classifier.6.weight"].sizes(), torch::IntArrayRef({10, 4096}));
  network.eval();
  const torch::Tensor logits = network.forward(torch::randn({1, 3, 32, 32}));
  EXPECT_EQ(logits.sizes(), torch::IntArrayRef({1, 10}));
}

}  // namespace
}  // namespace tutti::models
