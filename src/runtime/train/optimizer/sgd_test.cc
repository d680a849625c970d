// Covers: momentum.cc, kernels/sgd_kernel.cc.
#include "runtime/train/optimizer/sgd.h"

#include <gtest/gtest.h>
#include <torch/optim/sgd.h>

#include <cmath>

namespace tutti::train {
namespace {

struct Case {
  double momentum, weight_decay;
  bool nesterov;
};

class SgdEqualsTorch : public testing::TestWithParam<Case> {};

// Both update the same parameters with the same gradients for some steps.
TEST_P(SgdEqualsTorch, WithinRounding) {
  const Case& c = GetParam();
  torch::manual_seed(1);
  auto ours = torch::randn({33, 3, 3, 3}).set_requires_grad(true);
  auto bias = torch::randn({7}).set_requires_grad(true);
  auto theirs = ours.detach().clone().set_requires_grad(true);
  std::vector<std::unique_ptr<parallel::Bucket>> buckets;
  buckets.push_back(std::make_unique<parallel::Bucket>(
      std::vector<parallel::NamedParameter>{{"bias", bias}, {"weight", ours}}, 3));
  Sgd sgd(buckets,
          {.momentum = c.momentum, .weight_decay = c.weight_decay, .nesterov = c.nesterov});
  torch::optim::SGD reference({theirs}, torch::optim::SGDOptions(0.1)
                                            .momentum(c.momentum)
                                            .weight_decay(c.weight_decay)
                                            .nesterov(c.nesterov));
  for (int step = 0; step < 10; ++step) {
    const auto gradient = torch::randn_like(theirs);
    ours.mutable_grad().copy_(gradient);
    theirs.mutable_grad() = gradient.clone();
    sgd.Step(0.1);
    reference.step();
  }
  EXPECT_TRUE(torch::allclose(ours, theirs, 1e-6, 1e-6));
}

INSTANTIATE_TEST_SUITE_P(Coefficients, SgdEqualsTorch,
                         testing::Values(Case{0, 0, false}, Case{0.9, 0, false},
                                         Case{0.9, 5e-4, false}, Case{0.9, 5e-4, true},
                                         Case{0, 1e-2, false}));

TEST(Sgd, DecaysWeightsAloneWhereThatIsAsked) {
  torch::manual_seed(3);
  const auto parameters = [] {
    return std::vector<torch::Tensor>{torch::ones({5}), torch::ones({4, 3}),
                                      torch::ones({2, 3, 1, 1}), torch::ones({7})};
  };
  auto ours = parameters(), theirs = parameters();
  std::vector<parallel::NamedParameter> named;
  for (size_t i = 0; i < ours.size(); ++i) {
    named.push_back({std::to_string(i), ours[i].set_requires_grad(true)});
    theirs[i].set_requires_grad(true);
  }
  std::vector<std::unique_ptr<parallel::Bucket>> buckets;
  buckets.push_back(std::make_unique<parallel::Bucket>(named, 0));
  Sgd sgd(buckets, {.momentum = 0.9, .weight_decay = 0.1}, Decay::kWeights);
  const auto options = [](double decay) {
    return std::make_unique<torch::optim::SGDOptions>(
        torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(decay));
  };
  torch::optim::SGD reference(
      {torch::optim::OptimizerParamGroup({theirs[1], theirs[2]}, options(0.1)),
       torch::optim::OptimizerParamGroup({theirs[0], theirs[3]}, options(0))},
      torch::optim::SGDOptions(0.1));
  for (int step = 0; step < 5; ++step) {
    for (size_t i = 0; i < ours.size(); ++i) {
      const auto gradient = torch::randn_like(theirs[i]);
      ours[i].mutable_grad().copy_(gradient);
      theirs[i].mutable_grad() = gradient.clone();
    }
    sgd.Step(0.1);
    reference.step();
  }
  for (size_t i = 0; i < ours.size(); ++i) {
    EXPECT_TRUE(torch::allclose(ours[i], theirs[i], 1e-6, 1e-6)) << i;
  }
}

// Every length, so that each vector width meets its remainder.
TEST(SgdUpdate, EqualsTheFormulaForEveryLength) {
  const SgdCoefficients c{
      .learning_rate = 0.5, .momentum = 0.25, .weight_decay = 0.125, .nesterov = true};
  for (size_t count = 0; count < 70; ++count) {
    std::vector<float> p(count + 1), v(count + 1), g(count + 1);
    for (size_t i = 0; i <= count; ++i) {
      p[i] = static_cast<float>(i), v[i] = 2, g[i] = static_cast<float>(i % 5);
    }
    const auto before = p;
    SgdUpdate(p.data(), v.data(), g.data(), count, c);
    for (size_t i = 0; i < count; ++i) {
      const float d = g[i] + 0.125f * before[i];
      EXPECT_EQ(v[i], 0.5f + d);
      EXPECT_EQ(p[i], before[i] - 0.5f * (d + 0.25f * v[i]));
    }
    EXPECT_EQ(p[count], before[count]) << "wrote past the end";
  }
}

TEST(SgdUpdate, HasTheSameBitsForAnyNumberOfThreads) {
  constexpr size_t kCount = 300001;
  const SgdCoefficients c{.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 1e-4};
  torch::manual_seed(4);
  const auto start = torch::randn({3, kCount});
  const auto updated = [&](int threads) {
    auto state = start.clone();
    SgdUpdate(state[0].mutable_data_ptr<float>(), state[1].mutable_data_ptr<float>(),
              state[2].const_data_ptr<float>(), kCount, c, threads);
    return state;
  };
  const auto one = updated(1);
  EXPECT_FALSE(torch::equal(one, start));
  for (int threads : {2, 3, 5}) EXPECT_TRUE(torch::equal(updated(threads), one)) << threads;
}

TEST(Sgd, LeavesPaddingAtZero) {
  auto weight = torch::randn({3}).set_requires_grad(true);
  std::vector<std::unique_ptr<parallel::Bucket>> buckets;
  buckets.push_back(std::make_unique<parallel::Bucket>(
      std::vector<parallel::NamedParameter>{{"weight", weight}}, 0));
  Sgd sgd(buckets, {.momentum = 0.9, .weight_decay = 0.1});
  weight.mutable_grad().fill_(1);
  sgd.Step(0.1);
  EXPECT_TRUE(buckets[0]->values().narrow(0, 3, 13).eq(0).all().item<bool>());
}

TEST(Sgd, StateIsNamedAfterTheParametersAndSharesMemory) {
  auto weight = torch::randn({2, 2}).set_requires_grad(true);
  std::vector<std::unique_ptr<parallel::Bucket>> buckets;
  buckets.push_back(std::make_unique<parallel::Bucket>(
      std::vector<parallel::NamedParameter>{{"fc.weight", weight}}, 0));
  Sgd sgd(buckets, {.momentum = 0.9});
  auto state = parallel::ByName(sgd.state());
  ASSERT_EQ(state.size(), 1u);
  state.at("momentum.fc.weight").fill_(3);
  EXPECT_EQ(parallel::ByName(sgd.state()).at("momentum.fc.weight")[1][1].item<float>(), 3);
}

}  // namespace
}  // namespace tutti::train
