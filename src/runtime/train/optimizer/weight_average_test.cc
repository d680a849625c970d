#include "runtime/train/optimizer/weight_average.h"

#include <gtest/gtest.h>

#include "runtime/train/optimizer/sgd.h"

namespace tutti::train {
namespace {

struct LineModel : models::ModelImpl {
  LineModel() {
    weight = register_parameter("weight", torch::full({2, 2}, 1.0f));
    mean = register_buffer("mean", torch::full({2}, 10.0f));
    count = register_buffer("count", torch::full({1}, 3, torch::kInt64));
  }
  torch::Tensor forward(torch::Tensor images) override { return images; }
  torch::Tensor weight, mean, count;
};

class WeightAverageTest : public testing::Test {
 protected:
  WeightAverageTest() : model_(std::make_shared<LineModel>()) {
    buckets_.push_back(std::make_unique<parallel::Bucket>(
        std::vector<parallel::NamedParameter>{{"weight", model_->weight}}, 0));
    averaged_ = std::make_unique<WeightAverage>(
        std::make_unique<Sgd>(buckets_, SgdCoefficients{.momentum = 0, .weight_decay = 0}),
        buckets_, model_, 0.75);
  }

  // One step to weight and mean: the weight goes down by `by`.
  void Step(float by, float mean) {
    torch::NoGradGuard no_grad;
    model_->weight.mutable_grad().fill_(by);
    model_->mean.fill_(mean);
    averaged_->Step(1.0);
  }

  const std::shared_ptr<LineModel> model_;
  parallel::Buckets buckets_;
  std::unique_ptr<WeightAverage> averaged_;
};

TEST_F(WeightAverageTest, KeepsItsShareOfParametersAndFloatingBuffers) {
  Step(4, 2);
  Step(4, 2);
  const double weight = 0.75 * (0.75 * 1 + 0.25 * -3) + 0.25 * -7;
  const double mean = 0.75 * (0.75 * 10 + 0.25 * 2) + 0.25 * 2;
  auto state = parallel::ByName(averaged_->state());
  EXPECT_NEAR(state.at("average.weight")[1][0].item<double>(), weight, 1e-6);
  EXPECT_NEAR(state.at("average.mean")[0].item<double>(), mean, 1e-6);
  EXPECT_EQ(state.count("average.count"), 0u);
  EXPECT_EQ(state.count("momentum.weight"), 1u) << "the optimizer's own state is in it";
  EXPECT_EQ(state.size(), 3u);
}

TEST_F(WeightAverageTest, ExchangesTheModelForItsAverageAndBack) {
  Step(4, 2);
  averaged_->SwapWeights();
  EXPECT_EQ(model_->weight[0][0].item<float>(), 0);
  EXPECT_EQ(model_->mean[0].item<float>(), 8);
  EXPECT_EQ(model_->count.item<int64_t>(), 3);
  averaged_->SwapWeights();
  EXPECT_EQ(model_->weight[0][0].item<float>(), -3);
  EXPECT_EQ(model_->mean[0].item<float>(), 2);
}

}  // namespace
}  // namespace tutti::train
