#include "runtime/parallel/local_sgd.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/nn/functional/loss.h>

#include <mutex>

#include "runtime/parallel/thread_group_fake.h"
#include "runtime/parallel/whole_model_fake.h"

namespace tutti::parallel {
namespace {

using testing::HasSubstr;
using torch::Tensor;

constexpr int64_t kLocalSamples = 8;  // of a step over all ranks
constexpr double kLocalRate = 0.125;

LocalSgdOptions LocalOptionsOf(int64_t every) {
  return {.inner = {.bucket_bytes = 256, .optimizer = PlainDescents()},
          .exchange = {.every = every}};
}

std::unique_ptr<LocalSgd> LocalOf(models::Model model,
                                  std::unique_ptr<comm::Communicator> communicator,
                                  const LocalSgdOptions& options) {
  auto strategy = LocalSgd::Create(model, std::move(communicator), options);
  EXPECT_TRUE(strategy.ok()) << strategy.status();
  return *std::move(strategy);
}

Batch LocalPartOf(int64_t step, int rank, int ranks) {
  return BatchOfStep(step, kLocalSamples).Split(ranks)[static_cast<size_t>(rank)];
}

// What a strategy of these ranks has learnt after so many steps: rank 0's outer parameters.
template <typename Make>
std::vector<Tensor> Learnt(int ranks, int64_t steps, const Make& make) {
  std::vector<Tensor> learnt;
  OnEveryRank(ranks, [&](int rank, std::unique_ptr<comm::Communicator> communicator) {
    const std::unique_ptr<Strategy> strategy = make(std::move(communicator));
    ASSERT_TRUE(strategy->Synchronize(SoonOfATest()).ok());
    for (int64_t step = 0; step < steps; ++step) {
      const auto result = strategy->Step(LocalPartOf(step, rank, ranks), kLocalRate, SoonOfATest());
      ASSERT_TRUE(result.ok()) << result.status();
    }
    ASSERT_TRUE(strategy->Settle(SoonOfATest()).ok());
    strategy->SwapWeights();
    if (rank == 0) learnt = ValuesOf(strategy->model());
  });
  return learnt;
}

std::vector<Tensor> LearntLocally(int ranks, int64_t steps, const LocalSgdOptions& options) {
  return Learnt(ranks, steps, [&](std::unique_ptr<comm::Communicator> communicator) {
    return LocalOf(std::make_shared<TwoLayers>(), std::move(communicator), options);
  });
}

std::vector<Tensor> LocalGradientsAt(const models::Model& model, const Batch& batch) {
  const Tensor loss =
      torch::nn::functional::cross_entropy(model->forward(batch.inputs[0]), batch.targets);
  return torch::autograd::grad({loss}, model->parameters());
}

// The formulas of the header as a loop over the ranks, one parameter after the other.
std::vector<Tensor> LocalReference(int ranks, int64_t steps, const LocalSgdOptions& options,
                                   const std::function<int64_t(size_t)>& fragment_of) {
  torch::NoGradGuard no_grad;
  std::vector<models::Model> own;
  for (int r = 0; r < ranks; ++r) own.push_back(std::make_shared<TwoLayers>());
  std::vector<Tensor> outer = ValuesOf(own[0]), velocity, mean(outer.size());
  for (const Tensor& each : outer) velocity.push_back(torch::zeros_like(each));
  std::vector<int64_t> since(static_cast<size_t>(options.exchange.fragments), -1);
  const auto of_fragment = [&](int64_t f, const auto& body) {
    for (size_t i = 0; i < outer.size(); ++i) {
      if (fragment_of(i) == f) body(i);
    }
  };
  const auto end = [&](int64_t f) {
    const bool late = since[static_cast<size_t>(f)] > 0;
    since[static_cast<size_t>(f)] = -1;
    of_fragment(f, [&](size_t i) {
      velocity[i].mul_(options.exchange.momentum).add_(mean[i]);
      outer[i].sub_(mean[i].add(velocity[i], options.exchange.momentum), options.exchange.rate);
      for (const models::Model& model : own) {
        Tensor q = model->parameters()[i];
        late ? q.mul_(options.exchange.mix).add_(outer[i], 1 - options.exchange.mix)
             : q.copy_(outer[i]);
      }
    });
  };
  for (int64_t step = 1; step <= steps; ++step) {
    for (int r = 0; r < ranks; ++r) {
      torch::AutoGradMode with_gradients(true);
      const auto gradients =
          LocalGradientsAt(own[static_cast<size_t>(r)], LocalPartOf(step - 1, r, ranks));
      torch::AutoGradMode without(false);
      const auto parameters = own[static_cast<size_t>(r)]->parameters();
      for (size_t i = 0; i < outer.size(); ++i)
        Tensor(parameters[i]).sub_(gradients[i], kLocalRate);
    }
    for (int64_t f = 0; f < options.exchange.fragments; ++f) {
      int64_t& passed = since[static_cast<size_t>(f)];
      if (passed >= 0) ++passed;
      if (step % options.exchange.every ==
          f * options.exchange.every / options.exchange.fragments) {
        passed = 0;
        of_fragment(f, [&](size_t i) {
          mean[i] = outer[i] - own[0]->parameters()[i];
          for (int r = 1; r < ranks; ++r) {
            mean[i] = mean[i] + (outer[i] - own[static_cast<size_t>(r)]->parameters()[i]);
          }
          mean[i] = mean[i] / ranks;
        });
      }
      if (passed == options.exchange.delay) end(f);
    }
  }
  for (int64_t f = 0; f < options.exchange.fragments; ++f) {
    if (since[static_cast<size_t>(f)] >= 0) end(f);
  }
  return outer;
}

double FurthestOf(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, (a[i] - b[i]).abs().max().item<double>());
  }
  return most;
}

TEST(LocalSgd, EqualsAPlainLoopBitForBit) {
  LocalSgdOptions diloco = LocalOptionsOf(3);
  diloco.exchange.rate = 0.7;
  diloco.exchange.momentum = 0.9;
  const auto all = [](size_t) { return 0; };
  EXPECT_EQ(FurthestOf(LearntLocally(2, 11, diloco), LocalReference(2, 11, diloco, all)), 0);
  diloco.exchange.delay = 2;
  diloco.exchange.mix = 0.25;
  EXPECT_EQ(FurthestOf(LearntLocally(2, 10, diloco), LocalReference(2, 10, diloco, all)), 0);
}

// Buckets go from the last parameter to the first.
TEST(LocalSgd, FragmentsGoByThemselves) {
  LocalSgdOptions options = LocalOptionsOf(4);
  options.exchange.momentum = 0.5;
  options.exchange.fragments = 2;
  options.exchange.delay = 1;
  std::vector<int64_t> fragment_of(4, -1);
  OnEveryRank(1, [&](int, std::unique_ptr<comm::Communicator> communicator) {
    const auto model = std::make_shared<TwoLayers>();
    const auto strategy = LocalOf(model, std::move(communicator), options);
    ASSERT_GE(strategy->buckets().size(), 2u);
    const auto names = model->named_parameters().keys();
    for (size_t b = 0; b < strategy->buckets().size(); ++b) {
      for (const Bucket::Slot& slot : strategy->buckets()[b]->slots()) {
        const auto at = std::find(names.begin(), names.end(), slot.name) - names.begin();
        fragment_of[static_cast<size_t>(at)] = static_cast<int64_t>(b % 2);
      }
    }
  });
  const auto of = [&](size_t i) { return fragment_of[i]; };
  EXPECT_EQ(FurthestOf(LearntLocally(2, 13, options), LocalReference(2, 13, options, of)), 0);
}

TEST(LocalSgd, TheMeanAfterEachStepIsDataParallelism) {
  const auto parallel = [](std::unique_ptr<comm::Communicator> communicator) {
    const DataParallelOptions options{.bucket_bytes = 256, .optimizer = PlainDescents()};
    return *DataParallel::Create(std::make_shared<TwoLayers>(), std::move(communicator), options);
  };
  for (const int ranks : {2, 4}) {
    EXPECT_LT(FurthestOf(LearntLocally(ranks, 9, LocalOptionsOf(1)), Learnt(ranks, 9, parallel)),
              1e-12);
  }
}

// Of halves and quarters every sum is exact.
TEST(LocalSgd, OnDyadicValuesItIsDataParallelismBitForBit) {
  struct Scale : models::ModelImpl {
    Scale() {
      weight =
          register_parameter("weight", torch::tensor({{1.5, -0.25}, {0.5, 2.0}}, torch::kFloat64));
    }
    Tensor forward(Tensor x) override { return x.matmul(weight); }
    Tensor weight;
  };
  // Its gradient is the inputs' sums, which are dyadic.
  struct Sum : tasks::Task {
    absl::string_view name() const override { return "sum"; }
    tasks::Loss LossOf(const std::vector<Tensor>& outputs, const Tensor&) const override {
      return {outputs[0].sum(), Tensor()};
    }
    std::unique_ptr<tasks::Measure> NewMeasure() const override { return nullptr; }
  };
  const auto learnt = [](bool local) {
    std::vector<Tensor> values;
    OnEveryRank(4, [&](int rank, std::unique_ptr<comm::Communicator> communicator) {
      LocalSgdOptions options = LocalOptionsOf(1);
      options.inner.task = std::make_shared<Sum>();
      const models::Model model = std::make_shared<Scale>();
      std::unique_ptr<Strategy> strategy;
      if (local) {
        strategy = LocalOf(model, std::move(communicator), options);
      } else {
        strategy = *DataParallel::Create(model, std::move(communicator), options.inner);
      }
      ASSERT_TRUE(strategy->Synchronize(SoonOfATest()).ok());
      for (int64_t step = 0; step < 6; ++step) {
        const Tensor inputs = (torch::arange(4, torch::kFloat64).view({2, 2}) + rank + step).div(4);
        const auto result =
            strategy->Step({{inputs}, torch::zeros({2}, torch::kInt64)}, 0.5, SoonOfATest());
        ASSERT_TRUE(result.ok()) << result.status();
      }
      ASSERT_TRUE(strategy->Settle(SoonOfATest()).ok());
      strategy->SwapWeights();
      if (rank == 0) values = ValuesOf(model);
    });
    return values;
  };
  EXPECT_EQ(FurthestOf(learnt(true), learnt(false)), 0);
}

// What int8 has lost at one time is sent at another.
TEST(LocalSgd, RoundedDifferencesAddUpOverTime) {
  const auto in_fp32 = [](std::optional<comm::Encoding> encoding) {
    return Learnt(2, 40, [&](std::unique_ptr<comm::Communicator> communicator) {
      const auto model = std::make_shared<TwoLayers>();
      model->to(torch::kFloat32);
      LocalSgdOptions options = LocalOptionsOf(4);
      options.encoding = encoding;
      // Its inputs are fp64.
      struct InFp32 : models::ModelImpl {
        explicit InFp32(std::shared_ptr<TwoLayers> of) {
          layers = register_module("layers", std::move(of));
        }
        Tensor forward(Tensor x) override { return layers->forward(x.to(torch::kFloat32)); }
        std::shared_ptr<TwoLayers> layers;
      };
      return LocalOf(std::make_shared<InFp32>(model), std::move(communicator), options);
    });
  };
  const auto exact = in_fp32(std::nullopt);
  EXPECT_LT(FurthestOf(in_fp32(comm::Encoding::kBFloat16), exact), 4e-3);
  EXPECT_LT(FurthestOf(in_fp32(comm::Encoding::kInt8), exact), 2e-2);
}

// The mean of the ranks' running statistics is what is evaluated; a result tells of all samples.
TEST(LocalSgd, AllRanksAreEvaluatedAndTold) {
  std::mutex mutex;
  std::vector<Tensor> own, evaluated;
  int64_t counted = 0;
  OnEveryRank(2, [&](int rank, std::unique_ptr<comm::Communicator> communicator) {
    const auto model = std::make_shared<TwoLayers>(/*has_norm=*/true);
    LocalSgdOptions options = LocalOptionsOf(4);
    options.exchange.delay = 1;
    const auto strategy = LocalOf(model, std::move(communicator), options);
    ASSERT_TRUE(strategy->Synchronize(SoonOfATest()).ok());
    int64_t samples = 0;
    for (int64_t step = 0; step < 6; ++step) {
      const auto result = strategy->Step(LocalPartOf(step, rank, 2), kLocalRate, SoonOfATest());
      ASSERT_TRUE(result.ok());
      EXPECT_EQ(result->count,
                step == 4 ? 4 * kLocalSamples / 2 + kLocalSamples / 2 : kLocalSamples / 2);
      samples += result->count;
    }
    samples += strategy->Settle(SoonOfATest())->count;
    const Tensor mine = model->norm->running_mean.clone();
    strategy->SwapWeights();
    const std::lock_guard lock(mutex);
    own.push_back(mine);
    evaluated.push_back(model->norm->running_mean.clone());
    if (rank == 0) counted = samples;
  });
  EXPECT_FALSE(torch::equal(own[0], own[1]));
  EXPECT_TRUE(torch::equal(evaluated[0], evaluated[1]));
  EXPECT_LT((evaluated[0] - (own[0] + own[1]) / 2).abs().max().item<double>(), 1e-15);
  EXPECT_EQ(counted, 6 * kLocalSamples);
}

TEST(LocalSgd, AStopIsHeardByAllAfterTheSameStep) {
  std::vector<int64_t> stopped(3);
  OnEveryRank(3, [&](int rank, std::unique_ptr<comm::Communicator> communicator) {
    const auto strategy =
        LocalOf(std::make_shared<TwoLayers>(), std::move(communicator), LocalOptionsOf(4));
    ASSERT_TRUE(strategy->Synchronize(SoonOfATest()).ok());
    for (int64_t step = 1;; ++step) {
      if (rank == 1 && step == 2) strategy->RequestStop();
      const auto result = strategy->Step(LocalPartOf(step, rank, 3), kLocalRate, SoonOfATest());
      ASSERT_TRUE(result.ok());
      if (!result->stop) continue;
      stopped[static_cast<size_t>(rank)] = step;
      return;
    }
  });
  EXPECT_THAT(stopped, testing::Each(4));
}

TEST(LocalSgd, MoreFragmentsThanPartsAreRefused) {
  OnEveryRank(1, [](int, std::unique_ptr<comm::Communicator> communicator) {
    LocalSgdOptions options = LocalOptionsOf(500);
    options.exchange.fragments = 100;
    EXPECT_THAT(LocalSgd::Create(std::make_shared<TwoLayers>(), std::move(communicator), options)
                    .status()
                    .message(),
                HasSubstr("100 fragments, and the model has"));
  });
}

}  // namespace
}  // namespace tutti::parallel
