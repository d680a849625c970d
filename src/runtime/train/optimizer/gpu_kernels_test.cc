// The optimizers' kernels against the same optimizers on the CPU.
// Covers: runtime/device/kernels/bucket_chunks.cc.
#include "runtime/train/optimizer/gpu_kernels.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

#include "runtime/train/device_fixture.h"
#include "runtime/train/optimizer/adamw.h"
#include "runtime/train/optimizer/lamb.h"
#include "runtime/train/optimizer/lars.h"
#include "runtime/train/optimizer/sgd.h"

namespace tutti::train {
namespace {

using Buckets = parallel::Buckets;

struct Tried {
  std::string name;
  std::function<std::unique_ptr<parallel::Optimizer>(const Buckets&)> make;
};

template <class Made, class... Arguments>
Tried Of(const std::string& name, Arguments... arguments) {
  return {name,
          [=](const Buckets& buckets) { return std::make_unique<Made>(buckets, arguments...); }};
}

std::vector<Tried> AllOptimizers() {
  const SgdCoefficients sgd{.momentum = 0.9, .weight_decay = 0.1};
  const SgdCoefficients nesterov{.momentum = 0.9, .weight_decay = 0.1, .nesterov = true};
  const AdamCoefficients adam{.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-6, .weight_decay = 0.1};
  const LarsCoefficients lars{.momentum = 0.9, .weight_decay = 0.1, .trust = 0.02};
  return {Of<Sgd>("sgd", sgd),      Of<Sgd>("nesterov", nesterov, Decay::kWeights),
          Of<AdamW>("adamw", adam), Of<AdamW>("adamw, weights decay", adam, Decay::kWeights),
          Of<Lars>("lars", lars),   Of<Lamb>("lamb", adam)};
}

class OptimizerOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!gpu.ok()) GTEST_SKIP() << gpu.status().message();
    if (device::Kernels() == nullptr) GTEST_SKIP() << "libtutti_cuda.so was not built";
  }

  // Makes a bucket with ranges of less than a chunk, of several chunks, and of a size that vectors
  // of four do not divide; one of them begins with a norm of 0.
  static Buckets BucketOn(torch::Device device) {
    torch::manual_seed(1);
    std::vector<parallel::NamedParameter> parameters = {{"large", torch::randn({300, 33}) * 0.01},
                                                        {"bias", torch::randn({7})},
                                                        {"zero", torch::zeros({3, 4})},
                                                        {"conv", torch::randn({33, 3, 3, 3}) * 0.1},
                                                        {"weight", torch::ones({33})},
                                                        {"last", torch::randn({5, 3}) * 3}};
    for (auto& parameter : parameters) {
      parameter.tensor = parameter.tensor.to(device).set_requires_grad(true);
    }
    Buckets buckets;
    buckets.push_back(std::make_unique<parallel::Bucket>(parameters, 3));
    return buckets;
  }
  static Buckets OnTheGpu() {
    Buckets buckets = BucketOn(*gpu);
    buckets[0]->found_nonfinite = torch::zeros({1}, torch::device(*gpu));
    buckets[0]->copy = torch::zeros_like(buckets[0]->values(), torch::kBFloat16);
    return buckets;
  }
};

TEST_F(OptimizerOnGpu, EqualsTheSameOnTheCpu) {
  for (const Tried& tried : AllOptimizers()) {
    const Buckets here = BucketOn(torch::kCPU), there = OnTheGpu();
    const auto expected = tried.make(here), optimizer = tried.make(there);
    for (int step = 0; step < 6; ++step) {
      for (size_t i = 0; i < here[0]->slots().size(); ++i) {
        const torch::Tensor gradient = torch::randn_like(here[0]->slots()[i].parameter).detach();
        here[0]->slots()[i].parameter.mutable_grad().copy_(gradient);
        there[0]->slots()[i].parameter.mutable_grad().copy_(gradient);
      }
      expected->Step(0.05);
      optimizer->Step(0.05);
    }
    const torch::Tensor values = there[0]->values().cpu();
    EXPECT_TRUE(torch::allclose(values, here[0]->values(), 1e-4, 1e-5)) << tried.name;
    EXPECT_FALSE(torch::allclose(values, BucketOn(torch::kCPU)[0]->values(), 1e-2, 1e-2));
    EXPECT_TRUE(there[0]->copy.cpu().equal(values.to(torch::kBFloat16))) << tried.name;
    const auto ours = parallel::ByName(optimizer->state()),
               theirs = parallel::ByName(expected->state());
    ASSERT_EQ(ours.size(), theirs.size());
    for (const auto& [name, tensor] : ours) {
      EXPECT_TRUE(torch::allclose(tensor.cpu(), theirs.at(name), 1e-4, 1e-5)) << tried.name << name;
    }
  }
}

TEST_F(OptimizerOnGpu, ABucketWithANonfiniteGradientStaysAsItIs) {
  for (const Tried& tried : AllOptimizers()) {
    const Buckets buckets = OnTheGpu();
    const torch::Tensor before = buckets[0]->values().clone();
    const auto optimizer = tried.make(buckets);
    buckets[0]->gradients().fill_(std::numeric_limits<float>::quiet_NaN());
    buckets[0]->found_nonfinite.fill_(1);
    optimizer->Step(0.1);
    EXPECT_TRUE(buckets[0]->values().equal(before)) << tried.name;
    for (const auto& [name, tensor] : parallel::ByName(optimizer->state())) {
      EXPECT_TRUE(name == "updates" || tensor.eq(0).all().item<bool>()) << tried.name << name;
    }
  }
}

// A gradient so small that the ratio is more than fp32 holds, and 0 in places.
TEST_F(OptimizerOnGpu, AVanishingGradientLeavesTheWeightsFinite) {
  for (const Tried& tried : AllOptimizers()) {
    const Buckets buckets = OnTheGpu();
    buckets[0]->values().fill_(1e8f);
    buckets[0]->gradients().zero_();
    for (const auto& slot : buckets[0]->slots()) {
      buckets[0]->gradients()[slot.offset] = std::numeric_limits<float>::denorm_min();
    }
    tried.make(buckets)->Step(0.1);
    EXPECT_TRUE(buckets[0]->values().isfinite().all().item<bool>()) << tried.name;
  }
}

TEST(Chunks, LieWithinRangesAndCoverThem) {
  constexpr int64_t kMost = device::Chunks::kElements;
  const std::vector<int64_t> ends = {16, 16 + 2 * kMost + 32, 64 + 2 * kMost + 32};
  const auto chunks = device::MakeChunks(ends, {true, false, true}, torch::kCPU);
  const auto equals = [](const torch::Tensor& ours, std::vector<int64_t> numbers) {
    return ours.to(torch::kInt64).equal(torch::tensor(numbers, torch::kInt64));
  };
  EXPECT_TRUE(equals(chunks.begins, {0, 16, 16 + kMost, 16 + 2 * kMost, ends[1], ends[2]}));
  EXPECT_TRUE(equals(chunks.ranges, {0, 1, 1, 1, 2}));
  EXPECT_TRUE(equals(chunks.firsts, {0, 1, 4, 5}));
  EXPECT_TRUE(equals(chunks.decays, {1, 0, 1}));
}

}  // namespace
}  // namespace tutti::train
