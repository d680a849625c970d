// Covers: gradient_reducer.cc, flat_model.cc, step_tail.cc, catch_errors.h, lap.h,
// runtime/device/autocast.h.
#include "runtime/parallel/data_parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <functional>
#include <limits>
#include <mutex>
#include <optional>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "base/test_patience.h"
#include "runtime/parallel/flat_model.h"
#include "runtime/parallel/thread_group_fake.h"

namespace tutti::parallel {
namespace {

using testing::HasSubstr;

base::Deadline Soon() { return base::Deadline::After(base::Patient(absl::Seconds(20))); }

// A network of convolution, batch-norm and linear layer, small enough for fp64.
struct SmallNet : models::ModelImpl {
  SmallNet() {
    // Ranks are threads here and libtorch has one generator.
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    torch::manual_seed(1);
    first = register_module("first", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 4, 3)));
    norm = register_module("norm", torch::nn::BatchNorm2d(4));
    last = register_module("last", torch::nn::Linear(4, 5));
    unused = register_module("unused", torch::nn::Linear(2, 2));
  }
  torch::Tensor forward(torch::Tensor images) override {
    auto x = norm_first ? norm(first(images)) : first(images);
    return last(torch::relu(x).mean({2, 3}));
  }
  bool norm_first = false;  // batch-norm makes the result depend on how the batch is split
  torch::nn::Conv2d first = nullptr;
  torch::nn::BatchNorm2d norm = nullptr;
  torch::nn::Linear last = nullptr, unused = nullptr;
};

struct Samples {
  explicit Samples(int64_t count) {
    torch::manual_seed(2);
    images = torch::randn({count, 3, 6, 6}, torch::kFloat64);
    labels = torch::randint(5, {count}, torch::kInt64);
  }
  torch::Tensor images, labels;
};

std::unique_ptr<DataParallel> Parallel(models::Model model,
                                       std::unique_ptr<comm::Communicator> communicator,
                                       DataParallelOptions options = {}) {
  auto strategy = DataParallel::Create(std::move(model), std::move(communicator), options);
  EXPECT_TRUE(strategy.ok()) << strategy.status();
  return *std::move(strategy);
}

std::unique_ptr<comm::Communicator> Alone() { return std::move(MakeThreadGroup(1)[0]); }

torch::Tensor GradientsOf(const models::Model& model) {
  std::vector<torch::Tensor> all;
  for (const auto& p : model->parameters()) all.push_back(p.grad().flatten());
  return torch::cat(all);
}

// The gradient of one mini-batch that is cut into parts of these sizes, one per rank.
std::vector<torch::Tensor> GradientsOverRanks(const Samples& samples, std::vector<int64_t> parts,
                                              std::vector<StepResult>& results) {
  const int size = static_cast<int>(parts.size());
  std::vector<torch::Tensor> gradients(parts.size());
  results.resize(parts.size());
  OnEveryRank(size, [&](int rank, std::unique_ptr<comm::Communicator> communicator) {
    const size_t r = static_cast<size_t>(rank);
    auto model = std::make_shared<SmallNet>();
    model->to(torch::kFloat64);
    auto strategy = Parallel(model, std::move(communicator), {.bucket_bytes = 256});
    int64_t first = 0;
    for (size_t i = 0; i < r; ++i) first += parts[i];
    const auto result = strategy->Step(
        {{samples.images.narrow(0, first, parts[r])}, samples.labels.narrow(0, first, parts[r])}, 0,
        Soon());
    ASSERT_TRUE(result.ok()) << result.status();
    results[r] = *result;
    gradients[r] = GradientsOf(model);
  });
  return gradients;
}

TEST(DataParallel, UnequalPartsGiveTheMeanOverTheWholeMiniBatch) {
  const Samples samples(12);
  std::vector<StepResult> whole, result;
  const auto expected = GradientsOverRanks(samples, {12}, whole);
  for (const std::vector<int64_t>& parts :
       {std::vector<int64_t>{6, 6}, {1, 11}, {4, 3, 5}, {12, 0}, {0, 5, 7, 0}}) {
    const auto gradients = GradientsOverRanks(samples, parts, result);
    for (size_t rank = 0; rank < parts.size(); ++rank) {
      EXPECT_LT((gradients[rank] - expected[0]).abs().max().item<double>(), 1e-15);
      EXPECT_TRUE(torch::equal(gradients[rank], gradients[0]));
      EXPECT_NEAR(result[rank].loss, whole[0].loss, 1e-14);
      EXPECT_EQ(result[rank].correct, whole[0].correct);
      EXPECT_EQ(result[rank].count, 12);
    }
  }
}

// Returns the gradients of a step over `samples` (none: a step without images) in as many
// micro-batches, on one rank.
torch::Tensor AccumulatedGradients(const Samples& samples, int64_t accumulation,
                                   StepResult& result) {
  auto model = std::make_shared<SmallNet>();
  model->to(torch::kFloat64);
  auto strategy = Parallel(model, Alone(), {.accumulation = accumulation, .bucket_bytes = 256});
  const auto stepped = strategy->Step({{samples.images}, samples.labels}, 0, Soon());
  EXPECT_TRUE(stepped.ok()) << stepped.status();
  result = *stepped;
  return GradientsOf(model);
}

TEST(DataParallel, AccumulatedMicroBatchesGiveTheGradientOfOneLargeBatch) {
  const Samples samples(13);
  StepResult whole, parts;
  const auto expected = AccumulatedGradients(samples, 1, whole);
  for (const int64_t accumulation : {2, 5, 13, 20}) {  // the last: more than there are images
    const auto gradients = AccumulatedGradients(samples, accumulation, parts);
    EXPECT_LT((gradients - expected).abs().max().item<double>(), 1e-15) << accumulation;
    EXPECT_NEAR(parts.loss, whole.loss, 1e-14);
    EXPECT_EQ(parts.correct, whole.correct);
    EXPECT_EQ(parts.count, 13);
  }
}

// Two micro-batches of one rank are to batch-norm what two ranks' parts are: each is normalised by
// itself. On several ranks buckets wait for the last micro-batch, whoever has images for it.
TEST(DataParallel, MicroBatchesOfOneRankEqualRanksThatNormaliseByThemselves) {
  const Samples samples(8);
  const auto gradients_of = [&](int ranks, int64_t accumulation, std::vector<int64_t> counts) {
    torch::Tensor gradients;
    OnEveryRank(ranks, [&](int rank, std::unique_ptr<comm::Communicator> communicator) {
      auto model = std::make_shared<SmallNet>();
      model->norm_first = true;
      model->to(torch::kFloat64);
      auto strategy = Parallel(model, std::move(communicator),
                               {.accumulation = accumulation, .bucket_bytes = 256});
      int64_t first = 0;
      for (int before = 0; before < rank; ++before) first += counts[static_cast<size_t>(before)];
      const int64_t count = counts[static_cast<size_t>(rank)];
      const auto result = strategy->Step(
          {{samples.images.narrow(0, first, count)}, samples.labels.narrow(0, first, count)}, 0,
          Soon());
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_EQ(result->count, 8);
      if (rank == 0) gradients = GradientsOf(model);
    });
    return gradients;
  };
  const auto four_ranks = gradients_of(4, 1, {2, 2, 2, 2});
  for (const auto& gradients :
       {gradients_of(1, 4, {8}), gradients_of(2, 2, {4, 4}), gradients_of(3, 2, {4, 4, 0})}) {
    EXPECT_LT((gradients - four_ranks).abs().max().item<double>(), 1e-15);
  }
}

// What ranks tell each other in the tail stays exact.
TEST(DataParallel, CompressedGradientsAreNearThePlainOnesAndCountsAreEqual) {
  const Samples samples(12);
  std::vector<StepResult> results(2);
  std::vector<torch::Tensor> gradients(2);
  for (const auto compression : {std::optional<comm::Encoding>(), {comm::Encoding::kInt8}}) {
    const size_t kind = compression ? 1 : 0;
    OnEveryRank(3, [&](int rank, std::unique_ptr<comm::Communicator> communicator) {
      auto model = std::make_shared<SmallNet>();
      auto strategy = Parallel(model, std::move(communicator),
                               {.bucket_bytes = 256, .compression = compression});
      const auto result =
          strategy->Step({{samples.images.narrow(0, 4 * rank, 4).to(torch::kFloat32)},
                          samples.labels.narrow(0, 4 * rank, 4)},
                         0, Soon());
      ASSERT_TRUE(result.ok()) << result.status();
      if (rank != 0) return;
      results[kind] = *result;
      gradients[kind] = GradientsOf(model);
    });
  }
  EXPECT_EQ(results[1].loss, results[0].loss);
  EXPECT_EQ(results[1].correct, results[0].correct);
  EXPECT_FALSE(torch::equal(gradients[1], gradients[0]));
  const double largest = gradients[0].abs().max().item<double>();
  EXPECT_LT((gradients[1] - gradients[0]).abs().max().item<double>(), 0.02 * largest);
}

TEST(DataParallel, RefusesToCompressWhatIsNotInFp32) {
  auto model = std::make_shared<SmallNet>();
  model->to(torch::kFloat64);
  EXPECT_TRUE(absl::IsInvalidArgument(
      DataParallel::Create(model, Alone(), {.compression = comm::Encoding::kInt8}).status()));
}

TEST(DataParallel, OneProcessHasTheGradientsOfPlainAutograd) {
  const Samples samples(8);
  auto plain = std::make_shared<SmallNet>(), model = std::make_shared<SmallNet>();
  plain->to(torch::kFloat64);
  model->to(torch::kFloat64);
  const auto loss = torch::cross_entropy_loss(plain->forward(samples.images), samples.labels);
  loss.backward();
  auto strategy = Parallel(model, Alone());
  const auto result = strategy->Step({{samples.images}, samples.labels}, 0, Soon());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_DOUBLE_EQ(result->loss, loss.item<double>());
  for (const auto& entry : plain->named_parameters()) {
    const auto& gradient = model->named_parameters()[entry.key()].grad();
    const auto expected =
        entry.value().grad().defined() ? entry.value().grad() : torch::zeros_like(gradient);
    EXPECT_TRUE(torch::allclose(gradient, expected, 1e-12, 1e-16)) << entry.key();
  }
}

TEST(DataParallel, SynchronizeGivesEveryRankTheStateOfRankZero) {
  OnEveryRank(3, [&](int rank, std::unique_ptr<comm::Communicator> communicator) {
    auto model = std::make_shared<SmallNet>();
    auto strategy = Parallel(model, std::move(communicator));
    torch::NoGradGuard no_grad;
    for (auto& p : model->parameters()) p.fill_(rank + 1);
    for (auto& b : model->buffers()) b.fill_(rank + 1);
    ASSERT_TRUE(strategy->Synchronize(Soon()).ok());
    for (auto& p : model->parameters()) EXPECT_TRUE(p.eq(1).all().item<bool>());
    for (auto& b : model->buffers()) EXPECT_TRUE(b.eq(1).all().item<bool>());
  });
}

TEST(DataParallel, RunningStatisticsAreTheMeanOverTheRanks) {
  const Samples samples(8);
  std::vector<torch::Tensor> means(2);
  OnEveryRank(2, [&](int rank, std::unique_ptr<comm::Communicator> communicator) {
    auto model = std::make_shared<SmallNet>();
    model->norm_first = true;
    model->to(torch::kFloat64);
    auto strategy = Parallel(model, std::move(communicator));
    ASSERT_TRUE(
        strategy
            ->Step({{samples.images.narrow(0, 4 * rank, 4)}, samples.labels.narrow(0, 4 * rank, 4)},
                   0, Soon())
            .ok());
    means[static_cast<size_t>(rank)] = model->norm->running_mean.clone();
  });
  auto model = std::make_shared<SmallNet>();
  model->to(torch::kFloat64);
  const auto expected = 0.1 * model->first(samples.images).mean({0, 2, 3});
  EXPECT_TRUE(torch::equal(means[0], means[1]));
  EXPECT_TRUE(torch::allclose(means[0], expected, 1e-12, 1e-15));
}

// The first layer of a network; its backward (the last to run) waits until the test lets it.
struct Gate : torch::autograd::Function<Gate> {
  static torch::Tensor forward(torch::autograd::AutogradContext* context, torch::Tensor x,
                               absl::Notification* open) {
    context->saved_data["open"] = reinterpret_cast<int64_t>(open);
    return x.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    auto* open = reinterpret_cast<absl::Notification*>(context->saved_data["open"].toInt());
    EXPECT_TRUE(open->WaitForNotificationWithTimeout(base::Patient(absl::Seconds(20))))
        << "backward went on to its end before any bucket's all-reduce began";
    return {gradients[0], torch::Tensor()};
  }
};

struct GatedNet : models::ModelImpl {
  explicit GatedNet(absl::Notification* open) : open(open) {
    first = register_module("first", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 4, 3)));
    last = register_module("last", torch::nn::Linear(4, 5));
  }
  torch::Tensor forward(torch::Tensor images) override {
    return last(torch::relu(Gate::apply(first(images), open)).mean({2, 3}));
  }
  absl::Notification* open;
  torch::nn::Conv2d first = nullptr;
  torch::nn::Linear last = nullptr;
};

TEST(DataParallel, CommunicationOfTheFirstBucketBeginsBeforeBackwardEnds) {
  const Samples samples(4);
  absl::Notification begun[2];
  ThreadGroupWatch watch;
  watch.on_all_reduce = [&](int rank, size_t count) {
    if (count > 1 && !begun[rank].HasBeenNotified()) begun[rank].Notify();
    return absl::OkStatus();
  };
  OnEveryRank(
      2,
      [&](int rank, std::unique_ptr<comm::Communicator> communicator) {
        auto model = std::make_shared<GatedNet>(&begun[rank]);
        model->to(torch::kFloat64);
        auto strategy = Parallel(model, std::move(communicator), {.bucket_bytes = 128});
        EXPECT_GE(strategy->buckets().size(), 2u);
        (void)strategy->Step({{samples.images}, samples.labels}, 0, Soon());
      },
      watch);
}

TEST(DataParallel, NamesTheRankWhoseLossIsNotFinite) {
  const Samples samples(4);
  OnEveryRank(3, [&](int rank, std::unique_ptr<comm::Communicator> communicator) {
    auto model = std::make_shared<SmallNet>();
    model->to(torch::kFloat64);
    auto strategy = Parallel(model, std::move(communicator));
    auto images = samples.images.clone();
    if (rank == 1) images[0][0][0][0] = std::numeric_limits<double>::quiet_NaN();
    const auto result = strategy->Step({{images}, samples.labels}, 0, Soon());
    EXPECT_EQ(result.status().code(), absl::StatusCode::kOutOfRange);
    EXPECT_THAT(std::string(result.status().message()), HasSubstr("the loss of rank 1 is nan"));
  });
}

// The root of zero: a finite value with an infinite slope.
struct RootNet : models::ModelImpl {
  RootNet() { last = register_module("last", torch::nn::Linear(3, 5)); }
  torch::Tensor forward(torch::Tensor images) override {
    return last(images.mean({2, 3})) + (0 * last->bias.sum()).sqrt();
  }
  torch::nn::Linear last = nullptr;
};

TEST(DataParallel, NamesTheParameterWhoseGradientIsNotFiniteUnderAFiniteLoss) {
  const Samples samples(4);
  OnEveryRank(2, [&](int, std::unique_ptr<comm::Communicator> communicator) {
    auto model = std::make_shared<RootNet>();
    model->to(torch::kFloat64);
    auto strategy = Parallel(model, std::move(communicator));
    const auto result = strategy->Step({{samples.images}, samples.labels}, 0, Soon());
    EXPECT_EQ(result.status().code(), absl::StatusCode::kOutOfRange);
    EXPECT_THAT(std::string(result.status().message()),
                HasSubstr("the gradient of last.bias is not finite"));
  });
}

TEST(FirstNotFinite, IsNotMisledBySumsThatOverflow) {
  auto weight = torch::zeros({4}).set_requires_grad(true);
  std::vector<std::unique_ptr<Bucket>> buckets;
  buckets.push_back(std::make_unique<Bucket>(std::vector<NamedParameter>{{"weight", weight}}, 1));
  weight.mutable_grad().fill_(3e38);
  EXPECT_EQ(FirstNotFinite(buckets), "");
  weight.mutable_grad()[2] = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(FirstNotFinite(buckets), "weight");
  buckets[0]->tail().fill_(std::numeric_limits<float>::quiet_NaN());
  weight.mutable_grad().zero_();
  EXPECT_EQ(FirstNotFinite(buckets), "") << "the tail is no gradient";
}

TEST(DataParallel, AnErrorOfACollectiveIsTheStepsError) {
  const Samples samples(4);
  ThreadGroupWatch watch;
  watch.on_all_reduce = [&](int rank, size_t count) {
    return rank == 2 && count > 1 ? absl::UnavailableError("rank 2 died") : absl::OkStatus();
  };
  OnEveryRank(
      3,
      [&](int rank, std::unique_ptr<comm::Communicator> communicator) {
        auto model = std::make_shared<SmallNet>();
        model->to(torch::kFloat64);
        auto strategy = Parallel(model, std::move(communicator));
        const auto result = strategy->Step({{samples.images}, samples.labels}, 0, Soon());
        EXPECT_EQ(result.status().code(), absl::StatusCode::kUnavailable);
        EXPECT_THAT(std::string(result.status().message()), HasSubstr("rank 2"));
      },
      watch);
}

// Calls of rank 0, with memory that is gone as soon as they have returned.
struct WhileARankIsStuck {
  const char* what;
  bool synchronized_batch_norm;
  std::function<absl::Status(DataParallel&, base::Deadline)> call;
};

std::vector<WhileARankIsStuck> CallsThatWait() {
  const auto step = [](DataParallel& strategy, base::Deadline deadline) {
    const Samples samples(4);
    return strategy.Step({{samples.images.to(torch::kFloat32)}, samples.labels}, 0, deadline)
        .status();
  };
  const auto sum = [](DataParallel& strategy, base::Deadline deadline) {
    std::vector<double> values(10'000);
    return strategy.SumOverRanks(values, deadline);
  };
  const auto broadcast = [](DataParallel& strategy, base::Deadline deadline) {
    return strategy.Broadcast(torch::zeros({1 << 20}), deadline);
  };
  const auto synchronize = [](DataParallel& strategy, base::Deadline deadline) {
    return strategy.Synchronize(deadline);
  };
  const auto residual = [](DataParallel& strategy, base::Deadline deadline) {
    return strategy.Settle(deadline).status();
  };
  return {{"a step", false, step},
          {"a step with synchronized batch-norm", true, step},
          {"a sum", false, sum},
          {"a broadcast", false, broadcast},
          {"a synchronization", false, synchronize},
          {"what compression keeps back", false, residual}};
}

// It lives: its heartbeats go on. The step's deadline is everybody's own, and all come to it at
// about the same time, so that a waiter that were only a little sooner than its collective would
// name nobody. AddressSanitizer sees who writes after that.
TEST(DataParallel, ALiveButStuckRankIsNamedByAllWhoWaitForIt) {
  for (const WhileARankIsStuck& tried : CallsThatWait()) {
    SCOPED_TRACE(tried.what);
    absl::BlockingCounter others(2);
    OnEveryRank(3, [&](int rank, std::unique_ptr<comm::Communicator> communicator) {
      auto model = std::make_shared<SmallNet>();
      auto strategy = Parallel(
          model, std::move(communicator),
          {.synchronized_batch_norm = tried.synchronized_batch_norm,
           .compression = tried.synchronized_batch_norm ? std::nullopt
                                                        : std::optional(comm::Encoding::kInt8)});
      if (rank == 1) return others.Wait();
      const auto deadline = base::Deadline::After(base::PatientTimeout(absl::Milliseconds(300)));
      const absl::Status status = tried.call(*strategy, deadline);
      EXPECT_EQ(comm::LostRank(status), 1) << "rank " << rank << ": " << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1 is late"));
      others.DecrementCount();
    });
  }
}

TEST(DataParallel, AWishToStopReachesEveryRankInTheSameStep) {
  const Samples samples(4);
  OnEveryRank(3, [&](int rank, std::unique_ptr<comm::Communicator> communicator) {
    auto model = std::make_shared<SmallNet>();
    model->to(torch::kFloat64);
    auto strategy = Parallel(model, std::move(communicator));
    EXPECT_FALSE(strategy->Step({{samples.images}, samples.labels}, 0, Soon())->stop);
    if (rank == 1) strategy->RequestStop();
    EXPECT_TRUE(strategy->Step({{samples.images}, samples.labels}, 0, Soon())->stop);
  });
}

TEST(DataParallel, FrozenParametersAreNeitherReducedNorUpdated) {
  auto model = std::make_shared<SmallNet>();
  model->unused->weight.set_requires_grad(false);
  auto strategy = Parallel(model, Alone());
  for (const auto& bucket : strategy->buckets()) {
    for (const auto& slot : bucket->slots()) EXPECT_NE(slot.name, "unused.weight");
  }
}

TEST(DataParallel, ALabelOutOfRangeIsAnError) {
  const Samples samples(4);
  auto model = std::make_shared<SmallNet>();
  model->to(torch::kFloat64);
  auto strategy = Parallel(model, Alone());
  const auto result = strategy->Step({{samples.images}, samples.labels + 7}, 0, Soon());
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("out of bounds"));
}

TEST(DataParallel, Bf16KeepsParametersAndGradientsInFp32) {
  Samples samples(16);
  const auto images = samples.images.to(torch::kFloat32);
  auto exact = std::make_shared<SmallNet>(), model = std::make_shared<SmallNet>();
  auto reference = Parallel(exact, Alone());
  auto strategy = Parallel(model, Alone(), {.bf16 = true});
  ASSERT_TRUE(reference->Step({{images}, samples.labels}, 0, Soon()).ok());
  ASSERT_TRUE(strategy->Step({{images}, samples.labels}, 0, Soon()).ok());
  const auto a = GradientsOf(model), b = GradientsOf(exact);
  EXPECT_EQ(a.scalar_type(), torch::kFloat32);
  EXPECT_FALSE(torch::equal(a, b));
  EXPECT_LT(((a - b).norm() / b.norm()).item<double>(), 0.1);
}

}  // namespace
}  // namespace tutti::parallel
