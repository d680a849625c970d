// Covers: adam_moments.cc, kernels/adam_kernel.cc.
#include "runtime/train/optimizer/adamw.h"

#include <gtest/gtest.h>
#include <torch/optim/adamw.h>

namespace tutti::train {
namespace {

std::vector<std::unique_ptr<parallel::Bucket>> OneBucket(
    const std::vector<parallel::NamedParameter>& parameters) {
  std::vector<std::unique_ptr<parallel::Bucket>> buckets;
  buckets.push_back(std::make_unique<parallel::Bucket>(parameters, 3));
  return buckets;
}

// With and without a word on whether a gradient is not finite, as on a GPU and on a CPU; biases
// decay or not.
TEST(AdamW, EqualsTorchs) {
  for (const bool as_on_a_gpu : {false, true}) {
    for (const Decay decay : {Decay::kAll, Decay::kWeights}) {
      torch::manual_seed(1);
      auto weight = torch::randn({33, 3, 3, 3}).set_requires_grad(true);
      auto bias = torch::randn({7}).set_requires_grad(true);
      auto their_weight = weight.detach().clone().set_requires_grad(true);
      auto their_bias = bias.detach().clone().set_requires_grad(true);
      const auto buckets = OneBucket({{"bias", bias}, {"weight", weight}});
      if (as_on_a_gpu) buckets[0]->found_nonfinite = torch::zeros({1});
      AdamW adamw(buckets, {.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-6, .weight_decay = 0.1},
                  decay);
      const auto options = [](double weight_decay) {
        auto adam = torch::optim::AdamWOptions(0.01).betas({0.8, 0.95}).eps(1e-6);
        return std::make_unique<torch::optim::AdamWOptions>(adam.weight_decay(weight_decay));
      };
      torch::optim::AdamW reference(
          {torch::optim::OptimizerParamGroup({their_weight}, options(0.1)),
           torch::optim::OptimizerParamGroup({their_bias},
                                             options(decay == Decay::kAll ? 0.1 : 0))},
          torch::optim::AdamWOptions(0.01));
      for (int step = 0; step < 10; ++step) {
        for (auto [ours, theirs] : {std::pair(weight, their_weight), {bias, their_bias}}) {
          const auto gradient = torch::randn_like(theirs);
          ours.mutable_grad().copy_(gradient);
          theirs.mutable_grad() = gradient.clone();
        }
        adamw.Step(0.01);
        reference.step();
      }
      EXPECT_TRUE(torch::allclose(weight, their_weight, 1e-5, 1e-6)) << as_on_a_gpu;
      EXPECT_TRUE(torch::allclose(bias, their_bias, 1e-5, 1e-6)) << as_on_a_gpu;
      EXPECT_TRUE(buckets[0]->values().narrow(0, 7, 9).eq(0).all().item<bool>()) << "padding";
    }
  }
}

TEST(AdamW, ABucketWithANonfiniteGradientStaysAsItIs) {
  auto weight = torch::ones({4}).set_requires_grad(true);
  const auto buckets = OneBucket({{"weight", weight}});
  buckets[0]->found_nonfinite = torch::ones({1});
  AdamW adamw(buckets, {.weight_decay = 0.1});
  weight.mutable_grad().fill_(std::numeric_limits<float>::quiet_NaN());
  adamw.Step(0.1);
  EXPECT_TRUE(weight.eq(1).all().item<bool>());
  EXPECT_TRUE(parallel::ByName(adamw.state()).at("exp_avg.weight").eq(0).all().item<bool>());
}

// A run of 2 + 3 steps, its memory taken over in between, is one of 5.
TEST(AdamW, GoesOnFromItsState) {
  const auto stepped = [](AdamW& adamw, torch::Tensor& weight, int first, int last) {
    for (int step = first; step < last; ++step) {
      weight.mutable_grad().fill_(static_cast<float>(step + 1));
      adamw.Step(0.1);
    }
  };
  auto whole = torch::ones({5}).set_requires_grad(true),
       part = torch::ones({5}).set_requires_grad(true);
  const auto of_whole = OneBucket({{"weight", whole}}), of_part = OneBucket({{"weight", part}});
  AdamW reference(of_whole, {}), before(of_part, {}), after(of_part, {});
  stepped(reference, whole, 0, 5);
  stepped(before, part, 0, 2);
  auto state = parallel::ByName(after.state());
  for (const auto& each : before.state()) state.at(each.name).copy_(each.tensor);
  stepped(after, part, 2, 5);
  EXPECT_TRUE(part.equal(whole));
  EXPECT_EQ(state.at("updates").item<int64_t>(), 5);
}

TEST(AdamUpdate, HasTheSameBitsForAnyNumberOfThreads) {
  constexpr size_t kCount = 300001;
  torch::manual_seed(4);
  const auto start = torch::rand({4, kCount});
  const auto updated = [&](int threads) {
    auto state = start.clone();
    AdamUpdate(state[0].mutable_data_ptr<float>(), state[1].mutable_data_ptr<float>(),
               state[2].mutable_data_ptr<float>(), state[3].const_data_ptr<float>(), kCount, {}, 3,
               threads);
    return state;
  };
  const auto one = updated(1);
  EXPECT_FALSE(torch::equal(one, start));
  for (int threads : {2, 3, 5}) EXPECT_TRUE(torch::equal(updated(threads), one)) << threads;
}

}  // namespace
}  // namespace tutti::train
