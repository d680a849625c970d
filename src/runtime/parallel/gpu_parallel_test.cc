// Training steps on a GPU against the same on the CPU.
// Covers: gpu_sum.cc, gpu_input.cc.
#include "runtime/parallel/gpu_parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/test_patience.h"
#include "runtime/parallel/thread_group_fake.h"

namespace tutti::parallel {
namespace {

using testing::HasSubstr;
using torch::Tensor;

// Before anything else: libtorch looks for devices once.
const auto gpu = device::Open("cuda");

base::Deadline InAMinute() { return base::Deadline::After(base::Patient(absl::Seconds(60))); }

class GpuParallelTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!gpu.ok()) GTEST_SKIP() << gpu.status().message();
    torch::manual_seed(5);
    images_ = torch::randn({32, 3, 32, 32}).contiguous(torch::MemoryFormat::ChannelsLast);
    labels_ = torch::randint(10, {32}, torch::kInt64);
  }

  static models::Model Network() { return *models::MakeModel({"resnet20", 10}, 1); }

  static std::unique_ptr<Strategy> OnGpu(models::Model model,
                                         std::unique_ptr<comm::Communicator> communicator,
                                         bool bf16) {
    auto made =
        GpuParallel::Create(std::move(model), std::move(communicator), {.bf16 = bf16}, *gpu);
    EXPECT_TRUE(made.ok()) << made.status();
    EXPECT_TRUE((*made)->Synchronize(InAMinute()).ok());
    return *std::move(made);
  }
  static std::unique_ptr<comm::Communicator> Alone() { return std::move(MakeThreadGroup(1)[0]); }

  // Plain gradient descent, by hand: the optimizers are another room's.
  static void Descend(Strategy& strategy) {
    torch::NoGradGuard no_grad;
    for (const auto& bucket : strategy.buckets()) {
      Tensor step = bucket->gradients() * 0.05;
      if (bucket->found_nonfinite.defined())
        step = torch::where(bucket->found_nonfinite.eq(0), step, 0 * step);
      bucket->values().sub_(torch::nan_to_num(step));
      if (bucket->copy.defined()) bucket->copy.copy_(bucket->values());
    }
  }

  static Tensor ParametersOf(const models::Model& model) {
    std::vector<Tensor> all;
    for (const Tensor& parameter : model->parameters()) {
      all.push_back(parameter.detach().to(torch::kCPU, torch::kFloat64).flatten());
    }
    return torch::cat(all);
  }

  // Steps until one fails, or five.
  static absl::Status StepUntilItFails(Strategy& strategy, const Tensor& images,
                                       const Tensor& labels) {
    absl::Status status;
    for (int step = 0; step < 5 && status.ok(); ++step) {
      status = strategy.Step({{images}, labels}, 0, InAMinute()).status();
      Descend(strategy);
    }
    return status;
  }

  // The mean loss of `steps` steps over the same images, and the parameters after them.
  static std::pair<double, Tensor> Train(Strategy& strategy, const models::Model& model,
                                         const Tensor& images, const Tensor& labels, int steps) {
    double loss = 0;
    const auto add = [&](const absl::StatusOr<StepResult>& result) {
      ASSERT_TRUE(result.ok()) << result.status();
      loss += result->loss * static_cast<double>(result->count);
    };
    for (int step = 0; step < steps; ++step) {
      add(strategy.Step({{images}, labels}, 0, InAMinute()));
      Descend(strategy);
    }
    add(strategy.Settle(InAMinute()));
    return {loss / steps, ParametersOf(model)};
  }

  static double Distance(const Tensor& a, const Tensor& b) {
    return ((a - b).norm() / b.norm()).item<double>();
  }

  Tensor images_, labels_;
};

TEST_F(GpuParallelTest, StepsEqualTheCpusUpToRounding) {
  const auto here = Network(), there = Network();
  auto cpu = *DataParallel::Create(here, Alone(), {});
  const auto start = Train(*cpu, here, images_, labels_, 0).second;
  const auto expected = Train(*cpu, here, images_, labels_, 4);
  auto strategy = OnGpu(there, Alone(), /*bf16=*/false);
  const auto got = Train(*strategy, there, images_, labels_, 4);
  EXPECT_NEAR(got.first, expected.first, 1e-2 * expected.first);
  const double moved = Distance(start, expected.second);
  EXPECT_LT(Distance(got.second, expected.second), 0.1 * moved);
}

TEST_F(GpuParallelTest, Bf16StaysNearFp32) {
  const auto exact = Network(), rounded = Network();
  auto fp32 = OnGpu(exact, Alone(), false);
  const auto expected = Train(*fp32, exact, images_, labels_, 4);
  auto bf16 = OnGpu(rounded, Alone(), true);
  const auto got = Train(*bf16, rounded, images_.to(torch::kBFloat16), labels_, 4);
  EXPECT_NEAR(got.first, expected.first, 3e-2 * expected.first);
  EXPECT_LT(Distance(got.second, expected.second), 2e-2);
}

TEST_F(GpuParallelTest, TheFirstStepIsNoneTwiceAndTheBuffersAreUpdatedOnce) {
  const auto model = Network();
  auto strategy = OnGpu(model, Alone(), true);
  const Tensor images = images_.to(torch::kBFloat16);
  for (size_t step = 1; step <= GpuParallel::kAhead; ++step) {
    const auto none = strategy->Step({{images}, labels_}, 0, InAMinute());
    ASSERT_TRUE(none.ok()) << none.status();
    EXPECT_EQ(none->count, 0);
    EXPECT_EQ(strategy->outstanding(), static_cast<int64_t>(step));
  }
  const auto first = strategy->Step({{images}, labels_}, 0, InAMinute());
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->count, 32);
  const auto rest = strategy->Settle(InAMinute());
  ASSERT_TRUE(rest.ok()) << rest.status();
  EXPECT_EQ(rest->count, 64);
  EXPECT_NEAR(rest->loss, first->loss, 1e-3);  // nothing was learnt in between
  EXPECT_EQ(model->named_buffers()["bn1.num_batches_tracked"].item<int64_t>(), 3);
}

TEST_F(GpuParallelTest, ALossThatIsNotFiniteChangesNoParameter) {
  const auto model = Network();
  auto strategy = OnGpu(model, Alone(), true);
  Tensor images = images_.to(torch::kBFloat16);
  const auto before = Train(*strategy, model, images, labels_, 2).second;
  images[3].fill_(std::numeric_limits<float>::quiet_NaN());
  const absl::Status status = StepUntilItFails(*strategy, images, labels_);
  EXPECT_TRUE(absl::IsOutOfRange(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("the loss of rank 0 is nan"));
  EXPECT_EQ(strategy->outstanding(), static_cast<int64_t>(GpuParallel::kAhead) + 1);
  EXPECT_TRUE(torch::equal(ParametersOf(model), before));
}

// Each rank normalises with its own part: the same images for both make that no difference.
TEST_F(GpuParallelTest, TwoRanksEqualOneWithTheSameImages) {
  const auto alone = Network();
  auto one = OnGpu(alone, Alone(), false);
  const auto expected = Train(*one, alone, images_, labels_, 3);
  std::vector<std::pair<double, Tensor>> got(2);
  OnEveryRank(2, [&](int rank, std::unique_ptr<comm::Communicator> communicator) {
    const auto model = Network();
    auto strategy = OnGpu(model, std::move(communicator), false);
    got[static_cast<size_t>(rank)] = Train(*strategy, model, images_, labels_, 3);
  });
  EXPECT_TRUE(torch::equal(got[0].second, got[1].second));
  EXPECT_NEAR(got[0].first, 2 * expected.first, 2e-2 * expected.first);  // twice the samples
  EXPECT_LT(Distance(got[0].second, expected.second), 2e-3);
}

// One with a part that is empty: the sum is that of the other.
TEST_F(GpuParallelTest, ARankWithoutImagesChangesNothing) {
  const auto alone = Network();
  auto one = OnGpu(alone, Alone(), false);
  const auto expected = Train(*one, alone, images_, labels_, 3);
  std::vector<std::pair<double, Tensor>> got(2);
  OnEveryRank(2, [&](int rank, std::unique_ptr<comm::Communicator> communicator) {
    const auto model = Network();
    auto strategy = OnGpu(model, std::move(communicator), false);
    const int64_t count = rank == 0 ? images_.size(0) : 0;
    got[static_cast<size_t>(rank)] =
        Train(*strategy, model, images_.narrow(0, 0, count), labels_.narrow(0, 0, count), 3);
  });
  EXPECT_TRUE(torch::equal(got[0].second, got[1].second));
  EXPECT_NEAR(got[0].first, expected.first, 1e-2 * expected.first);
  EXPECT_LT(Distance(got[0].second, expected.second), 2e-3);
}

TEST_F(GpuParallelTest, ALossThatIsNotFiniteOnOneRankStopsAllBeforeAnUpdate) {
  OnEveryRank(2, [&](int rank, std::unique_ptr<comm::Communicator> communicator) {
    const auto model = Network();
    auto strategy = OnGpu(model, std::move(communicator), true);
    Tensor images = images_.to(torch::kBFloat16);
    const auto before = Train(*strategy, model, images, labels_, 2).second;
    if (rank == 1) images[3].fill_(std::numeric_limits<float>::quiet_NaN());
    const absl::Status status = StepUntilItFails(*strategy, images, labels_);
    EXPECT_TRUE(absl::IsOutOfRange(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr("the loss of rank 1 is nan"));
    EXPECT_EQ(strategy->outstanding(), static_cast<int64_t>(GpuParallel::kAhead) + 1);
    EXPECT_TRUE(torch::equal(ParametersOf(model), before));
  });
}

TEST_F(GpuParallelTest, WhatOneRankAsksAllHearWhenTheySettle) {
  OnEveryRank(2, [&](int rank, std::unique_ptr<comm::Communicator> communicator) {
    const auto model = Network();
    auto strategy = OnGpu(model, std::move(communicator), false);
    if (rank == 1) strategy->RequestStop();
    const auto step = strategy->Step({{images_}, labels_}, 0, InAMinute());
    ASSERT_TRUE(step.ok()) << step.status();
    EXPECT_FALSE(step->stop);
    const auto settled = strategy->Settle(InAMinute());
    ASSERT_TRUE(settled.ok()) << settled.status();
    EXPECT_TRUE(settled->stop);
    EXPECT_EQ(settled->count, 64);
  });
}

TEST_F(GpuParallelTest, PredictsAsTheCpuDoes) {
  const auto here = Network(), there = Network();
  auto cpu = *DataParallel::Create(here, Alone(), {});
  auto strategy = OnGpu(there, Alone(), false);
  const auto expected = cpu->Predict({images_}, InAMinute()),
             got = strategy->Predict({images_}, InAMinute());
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(got->device().is_cpu());
  EXPECT_TRUE(torch::allclose(*got, *expected, 1e-2, 1e-2));
}

TEST_F(GpuParallelTest, WhatAGpuDoesNotDoIsSaid) {
  const auto compressed =
      GpuParallel::Create(Network(), Alone(), {.compression = comm::Encoding::kInt8}, *gpu);
  EXPECT_TRUE(absl::IsInvalidArgument(compressed.status())) << compressed.status();
}

}  // namespace
}  // namespace tutti::parallel
