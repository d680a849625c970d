// Covers: synchronized_batch_norm.cc.
#include "runtime/models/layers/batch_norm.h"

#include <gtest/gtest.h>

#include <barrier>
#include <thread>

#include "runtime/models/state.h"

namespace tutti::models {
namespace {

using torch::Tensor;

// Ranks that are threads; Sum adds in rank order, so that every rank gets the same bits.
class FakeRanks {
 public:
  explicit FakeRanks(int size) : barrier_(size), sums_(size) {}

  SumOverRanks SumOf(int rank) {
    return [this, rank](Tensor& sums) {
      EXPECT_EQ(sums.scalar_type(), torch::kFloat64);
      EXPECT_TRUE(sums.is_contiguous());
      sums_[rank] = sums.clone();
      barrier_.arrive_and_wait();
      Tensor total = torch::zeros_like(sums);
      for (const Tensor& part : sums_) total += part;
      barrier_.arrive_and_wait();
      sums.copy_(total);
      return absl::OkStatus();
    };
  }

  void Run(const std::function<void(int rank)>& body) {
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < sums_.size(); ++rank) threads.emplace_back(body, rank);
    for (std::thread& thread : threads) thread.join();
  }

 private:
  std::barrier<> barrier_;
  std::vector<Tensor> sums_;
};

Tensor Loss(const Tensor& y) { return (y.square() * y.sigmoid()).sum(); }

struct Sizes {
  std::vector<int64_t> images;  // of each rank
  torch::Dtype type;
  double bound;
};

void ExpectEqualToOneProcess(const Sizes& sizes) {
  torch::manual_seed(3);
  constexpr int64_t kChannels = 5;
  int64_t total = 0;
  for (int64_t n : sizes.images) total += n;
  const Tensor all = (torch::randn({total, kChannels, 4, 3}, torch::kFloat64) * 2 + 30)
                         .to(sizes.type)
                         .contiguous(torch::MemoryFormat::ChannelsLast);
  const auto make = [&] {
    BatchNorm norm(kChannels);
    if (sizes.type == torch::kFloat64) norm->to(torch::kFloat64);
    torch::NoGradGuard no_grad;
    norm->weight.copy_(torch::linspace(0.5, 2, kChannels));
    norm->bias.copy_(torch::linspace(-1, 1, kChannels));
    return norm;
  };

  BatchNorm whole = make();
  const Tensor x = all.clone().requires_grad_();
  const Tensor y = whole->forward(x);
  Loss(y).backward();

  const int ranks = static_cast<int>(sizes.images.size());
  std::vector<BatchNorm> norms;
  std::vector<Tensor> inputs, outputs(ranks);
  FakeRanks fake(ranks);
  int64_t at = 0;
  for (int rank = 0; rank < ranks; at += sizes.images[rank++]) {
    norms.push_back(make());
    norms.back()->set_sum_over_ranks(fake.SumOf(rank));
    inputs.push_back(all.narrow(0, at, sizes.images[rank]).clone().requires_grad_());
  }
  fake.Run([&](int rank) {
    outputs[rank] = norms[rank]->forward(inputs[rank]);
    Loss(outputs[rank]).backward();
  });

  const auto expect_near = [&](const Tensor& a, const Tensor& b, const char* what) {
    EXPECT_TRUE(torch::allclose(a, b.to(a.scalar_type()), sizes.bound, sizes.bound))
        << what << " differs by " << (a - b).abs().max().item<double>();
  };
  Tensor weight_gradient = torch::zeros_like(whole->weight);
  Tensor bias_gradient = torch::zeros_like(whole->bias);
  std::vector<Tensor> input_gradients;
  for (int rank = 0; rank < ranks; ++rank) {
    weight_gradient += norms[rank]->weight.grad();
    bias_gradient += norms[rank]->bias.grad();
    input_gradients.push_back(inputs[rank].grad());
    expect_near(norms[rank]->running_mean, whole->running_mean, "running_mean");
    expect_near(norms[rank]->running_var, whole->running_var, "running_var");
    EXPECT_EQ(norms[rank]->num_batches_tracked.item<int64_t>(), 1);
    EXPECT_EQ(outputs[rank].scalar_type(), sizes.type);
  }
  expect_near(torch::cat(outputs), y, "output");
  expect_near(torch::cat(input_gradients), x.grad(), "input gradient");
  expect_near(weight_gradient, whole->weight.grad(), "weight gradient");
  expect_near(bias_gradient, whole->bias.grad(), "bias gradient");
}

TEST(SynchronizedBatchNorm, EqualsBatchNormOverTheWholeMiniBatch) {
  ExpectEqualToOneProcess({{4, 4}, torch::kFloat64, 1e-10});
  ExpectEqualToOneProcess({{3, 5, 1}, torch::kFloat64, 1e-10});
}

TEST(SynchronizedBatchNorm, TakesARankWithoutImages) {
  ExpectEqualToOneProcess({{4, 0}, torch::kFloat64, 1e-10});
}

TEST(SynchronizedBatchNorm, KeepsTheDigitsOfFloat) {
  ExpectEqualToOneProcess({{4, 4}, torch::kFloat32, 3e-4});
}

TEST(SynchronizedBatchNorm, WorksOnBfloat16) {
  ExpectEqualToOneProcess({{4, 4}, torch::kBFloat16, 0.05});
}

TEST(SynchronizedBatchNorm, IsUsedByEveryNormOfAModel) {
  // Two ranks with half of the images each get the gradients of one with all of them.
  const Tensor images = torch::randn({8, 3, 32, 32}, torch::kFloat64);
  const auto make = [] {
    Model model = *MakeModel({"resnet20", 10}, 1);
    model->to(torch::kFloat64);
    return model;
  };
  const Model whole = make();
  whole->forward(images).square().sum().backward();

  FakeRanks fake(2);
  const std::vector<Model> parts = {make(), make()};
  for (int rank = 0; rank < 2; ++rank) UseSynchronizedBatchNorm(parts[rank], fake.SumOf(rank));
  fake.Run([&](int rank) {
    parts[rank]->forward(images.narrow(0, 4 * rank, 4)).square().sum().backward();
  });
  const auto first = parts[0]->named_parameters(), second = parts[1]->named_parameters();
  for (const auto& parameter : whole->named_parameters()) {
    const Tensor sum = first[parameter.key()].grad() + second[parameter.key()].grad();
    EXPECT_TRUE(torch::allclose(sum, parameter.value().grad(), 1e-8, 1e-8)) << parameter.key();
  }
}

TEST(SynchronizedBatchNorm, PassesTheErrorOfTheSumOn) {
  BatchNorm norm(2);
  int calls = 0;
  norm->set_sum_over_ranks([&](Tensor&) {
    return ++calls == 1 ? absl::OkStatus() : absl::UnavailableError("rank 1 is gone");
  });
  const Tensor x = torch::randn({2, 2, 3, 3}).requires_grad_();
  const Tensor loss = norm->forward(x).sum();
  try {
    loss.backward();
    FAIL() << "no exception";
  } catch (const SumFailed& error) {
    EXPECT_EQ(error.status, absl::UnavailableError("rank 1 is gone"));
  }
}

TEST(BatchNorm, NormalisesWithTheRunningStatisticsWhenNotTraining) {
  BatchNorm norm(2);
  norm->set_sum_over_ranks([](Tensor&) { return absl::InternalError("must not be called"); });
  norm->eval();
  const Tensor x = torch::randn({2, 2, 3, 3});
  EXPECT_TRUE(torch::allclose(norm->forward(x), x, 1e-4, 1e-5));
  EXPECT_EQ(norm->num_batches_tracked.item<int64_t>(), 0);
}

}  // namespace
}  // namespace tutti::models
