// Covers: runtime/parallel/layout.cc, runtime/parallel/strategy.cc,
// runtime/parallel/synchronous.cc, runtime/parallel/collectives.h.
#include "runtime/parallel/pipeline/pipeline_parallel.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>

#include <limits>
#include <mutex>

#include "base/test_patience.h"
#include "runtime/comm/communicator.h"
#include "runtime/models/networks/residual_network.h"
#include "runtime/models/networks/vgg.h"
#include "runtime/models/state.h"
#include "runtime/parallel/data_parallel.h"
#include "runtime/parallel/thread_group_fake.h"

namespace tutti::parallel {
namespace {

using testing::HasSubstr;

constexpr int64_t kClasses = 5;

base::Deadline InAMoment() { return base::Deadline::After(base::Patient(absl::Seconds(60))); }

// Real networks, small: what they are made of is what the large ones are made of.
models::ResidualOptions ThinResidual() {
  return {.width = 4, .blocks = {1, 2, 1}, .classes = kClasses};
}
models::ResidualOptions ThinBottleneck() {
  return {.stem = models::ResidualOptions::Stem::kDownsampling,
          .block = models::ResidualOptions::Block::kBottleneck,
          .shortcut = models::ResidualOptions::Shortcut::kProjection,
          .width = 4,
          .blocks = {1, 2, 1},
          .classes = kClasses};
}

// VGG with fewer channels; without dropout, whose masks are each rank's own.
class ThinVgg final : public models::FeatureClassifier {
 public:
  ThinVgg() {
    models::Chain features, classifier;
    models::AppendVggStage(features, 3, 4, 2);
    features->Append(models::HalvingPool());
    models::AppendVggStage(features, 4, 6, 2);
    features->Append(models::HalvingPool());
    classifier->Append(torch::nn::Linear(24, 8));
    classifier->Append(torch::nn::ReLU(torch::nn::ReLUOptions(/*inplace=*/true)));
    classifier->Append(torch::nn::Linear(8, kClasses));
    FeatureClassifier::Make(features, 2, classifier);
  }
};

enum class Net { kResidual, kBottleneck, kVgg };

// Ranks are threads here, and libtorch has one generator.
models::Model Make(Net net) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  torch::manual_seed(1);
  models::Model model;
  if (net == Net::kVgg) model = std::make_shared<ThinVgg>();
  if (net == Net::kResidual) model = std::make_shared<models::ResidualNetwork>(ThinResidual());
  if (net == Net::kBottleneck) model = std::make_shared<models::ResidualNetwork>(ThinBottleneck());
  model->to(torch::kFloat64);
  return model;
}

struct Course {
  Net net = Net::kResidual;
  int stages = 2, replicas = 1;
  int64_t micro_batches = 4;
  Timetable (*timetable)(int64_t, int64_t) = OneForwardOneBackward;
  double clip_norm = 0;
  int64_t samples = 14;  // which four micro-batches do not share evenly
  int64_t steps = 3;
};

using Tensors = std::map<std::string, torch::Tensor>;

struct Trained {
  Tensors tensors;  // of the whole model, after the last step
  std::vector<double> losses;
  std::vector<int64_t> correct;
  std::vector<int64_t> parameters;  // by rank
  torch::Tensor predicted;
};

struct StagedSamples {
  StagedSamples(int64_t steps, int64_t count) {
    torch::manual_seed(2);
    inputs = torch::randn({steps, count, 3, 16, 16}, torch::kFloat64);
    targets = torch::randint(kClasses, {steps, count}, torch::kInt64);
  }
  Batch PartOf(int64_t step, const Layout& layout) const {
    const auto part = [&](const torch::Tensor& all) {
      return all[step].tensor_split(layout.replicas())[static_cast<size_t>(layout.replica())];
    };
    Batch batch{{}, part(targets)};
    if (layout.reads_inputs()) batch.inputs.push_back(part(inputs));
    return batch;
  }
  torch::Tensor inputs, targets;
};

constexpr double kRate = 0.1;

class Descent final : public Optimizer {
 public:
  explicit Descent(const Buckets& buckets) : buckets_(buckets) {}
  void Step(double learning_rate) override {
    torch::NoGradGuard no_grad;
    for (const auto& bucket : buckets_) {
      bucket->values().sub_(bucket->gradients(), /*alpha=*/learning_rate);
    }
  }
  State state() override { return {}; }

 private:
  const Buckets& buckets_;
};

std::unique_ptr<Optimizer> MakeDescent(const Buckets& buckets, const models::Model&) {
  return std::make_unique<Descent>(buckets);
}

// What one rank does; what it holds in the end is put under `all`, which the ranks share.
void TrainAsRank(Strategy& strategy, const StagedSamples& samples, Trained& all) {
  static std::mutex mutex;
  ASSERT_TRUE(strategy.Synchronize(InAMoment()).ok());
  const Layout& layout = strategy.layout();
  for (int64_t step = 0; step < samples.inputs.size(0); ++step) {
    const auto result = strategy.Step(samples.PartOf(step, layout), kRate, InAMoment());
    ASSERT_TRUE(result.ok()) << result.status();
    if (!layout.reports()) continue;
    all.losses.push_back(result->loss);
    all.correct.push_back(result->correct);
    EXPECT_EQ(result->count, samples.inputs.size(1));
  }
  const auto predicted = strategy.Predict(samples.PartOf(0, layout).inputs, InAMoment());
  ASSERT_TRUE(predicted.ok()) << predicted.status();
  EXPECT_EQ(predicted->defined(), layout.has_outputs());
  const std::lock_guard lock(mutex);
  if (layout.has_outputs() && layout.replica() == 0) all.predicted = predicted->clone();
  all.parameters.resize(static_cast<size_t>(layout.world_size));
  for (const torch::Tensor& parameter : strategy.model()->parameters()) {
    all.parameters[static_cast<size_t>(layout.rank)] += parameter.numel();
  }
  for (const auto& [name, tensor] : models::StateOf(*strategy.model())) {
    const auto [at, is_new] = all.tensors.emplace(name, tensor.clone());
    EXPECT_TRUE(torch::equal(at->second, tensor)) << name << " differs between replicas";
  }
}

Trained OnOneProcess(const Course& course) {
  at::set_num_threads(1);
  Trained trained;
  const StagedSamples samples(course.steps, course.samples);
  OnEveryRank(1, [&](int, std::unique_ptr<comm::Communicator> alone) {
    auto strategy = DataParallel::Create(Make(course.net), std::move(alone),
                                         {.accumulation = course.micro_batches,
                                          .clip_norm = course.clip_norm,
                                          .optimizer = MakeDescent});
    ASSERT_TRUE(strategy.ok()) << strategy.status();
    TrainAsRank(**strategy, samples, trained);
  });
  return trained;
}

// Cuts into equal numbers of layers.
Cut EvenCut(size_t layers, int stages) {
  Cut cut;
  for (int stage = 0; stage < stages; ++stage) {
    cut.push_back(layers * static_cast<size_t>(stage) / static_cast<size_t>(stages));
  }
  return cut;
}

absl::StatusOr<std::unique_ptr<PipelineParallel>> PipelineOf(
    const Course& course, std::unique_ptr<comm::Communicator> communicator) {
  const auto layout = LayOut({.data = course.replicas, .pipeline = course.stages},
                             communicator->rank(), communicator->size());
  models::Model whole = Make(course.net);
  const size_t layers = whole->Layers().size();
  return PipelineParallel::Create(std::move(whole), std::move(communicator),
                                  {.layout = layout.value(),
                                   .cut = EvenCut(layers, course.stages),
                                   .timetable = course.timetable,
                                   .micro_batches = course.micro_batches,
                                   .clip_norm = course.clip_norm,
                                   .optimizer = MakeDescent},
                                  InAMoment());
}

Trained OnAPipeline(const Course& course) {
  at::set_num_threads(1);
  Trained trained;
  const StagedSamples samples(course.steps, course.samples);
  OnEveryRank(course.stages * course.replicas,
              [&](int, std::unique_ptr<comm::Communicator> communicator) {
                auto strategy = PipelineOf(course, std::move(communicator));
                ASSERT_TRUE(strategy.ok()) << strategy.status();
                TrainAsRank(**strategy, samples, trained);
              });
  return trained;
}

// How many tensors are not the same bits.
int DifferencesOf(const Trained& one, const Trained& other) {
  int differences = one.tensors.size() == other.tensors.size() ? 0 : 1000;
  for (const auto& [name, tensor] : one.tensors) {
    const auto found = other.tensors.find(name);
    differences += found == other.tensors.end() || !torch::equal(found->second, tensor) ? 1 : 0;
  }
  return differences;
}

void ExpectEqual(const Course& course, const char* what) {
  const Trained one = OnOneProcess(course), stages = OnAPipeline(course);
  EXPECT_EQ(DifferencesOf(one, stages), 0) << what << ", " << course.stages << " stages";
  EXPECT_EQ(one.losses, stages.losses) << what;
  EXPECT_EQ(one.correct, stages.correct) << what;
  EXPECT_TRUE(torch::equal(one.predicted, stages.predicted)) << what;
  int64_t all = 0;
  for (const int64_t held : stages.parameters) all += held;
  EXPECT_EQ(all, one.parameters[0]) << "a stage holds its own parameters alone";
}

class PipelineEquality : public testing::TestWithParam<Net> {};

TEST_P(PipelineEquality, StagesEqualOneProcessBitForBitInFp64) {
  for (const ScheduleEntry& schedule : Schedules()) {
    for (const int stages : {2, 3, 4}) {
      ExpectEqual({.net = GetParam(), .stages = stages, .timetable = schedule.make},
                  schedule.name.data());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, PipelineEquality,
                         testing::Values(Net::kResidual, Net::kBottleneck, Net::kVgg));

// Each device computes in turn, and waits for the others.
TEST(PipelineParallel, OneMicroBatchEqualsOneProcess) {
  ExpectEqual({.stages = 3, .micro_batches = 1}, "one micro-batch");
}

TEST(PipelineParallel, MoreMicroBatchesThanSamplesEqualOneProcess) {
  ExpectEqual({.stages = 2, .micro_batches = 8, .samples = 5}, "few samples");
}

TEST(PipelineParallel, ClippingGoesByTheNormOverAllStages) {
  const Course course{.stages = 3, .clip_norm = 0.05};
  ExpectEqual(course, "clipped");
  Course free = course;
  free.clip_norm = 0;
  EXPECT_GT(DifferencesOf(OnOneProcess(course), OnOneProcess(free)), 0);
}

// Nobody has to touch what executes it.
Timetable OneAfterTheOther(int64_t stages, int64_t micro_batches) {
  Timetable table(static_cast<size_t>(stages));
  for (auto& actions : table) {
    for (int64_t i = 0; i < micro_batches; ++i) {
      actions.push_back({Pass::kForward, i});
      actions.push_back({Pass::kBackward, i});
    }
  }
  return table;
}

TEST(PipelineParallel, AThirdScheduleIsATable) {
  ExpectEqual({.stages = 3, .timetable = OneAfterTheOther}, "one after the other");
}

Timetable WithoutTheLast(int64_t stages, int64_t micro_batches) {
  Timetable table = OneForwardOneBackward(stages, micro_batches);
  for (auto& actions : table) {
    std::erase_if(actions, [&](const Action& a) { return a.micro_batch == micro_batches - 1; });
  }
  return table;
}

TEST(PipelineParallel, ADroppedMicroBatchIsNotEqual) {
  const Course whole{.steps = 1};
  Course dropped = whole;
  dropped.timetable = WithoutTheLast;
  EXPECT_GT(DifferencesOf(OnOneProcess(whole), OnAPipeline(dropped)), 0);
}

// Two pipelines side by side equal two ranks of data parallelism: sums of two have one order.
TEST(PipelineParallel, ReplicasOfAPipelineEqualRanksOfDataParallelism) {
  at::set_num_threads(1);
  const Course course{.stages = 2, .replicas = 2};
  const StagedSamples samples(course.steps, course.samples);
  Trained ranks;
  OnEveryRank(2, [&](int, std::unique_ptr<comm::Communicator> communicator) {
    auto strategy =
        DataParallel::Create(Make(course.net), std::move(communicator),
                             {.accumulation = course.micro_batches, .optimizer = MakeDescent});
    TrainAsRank(**strategy, samples, ranks);
  });
  const Trained pipelines = OnAPipeline(course);
  EXPECT_EQ(DifferencesOf(ranks, pipelines), 0);
  EXPECT_EQ(ranks.losses, pipelines.losses);
  EXPECT_EQ(ranks.correct, pipelines.correct);
}

TEST(PipelineParallel, WhatIsNotFiniteIsSaidOnEveryRankAndNothingIsUpdated) {
  const Course course{.stages = 3, .steps = 1};
  StagedSamples samples(1, course.samples);
  samples.inputs[0][3][0][0][0] = std::numeric_limits<double>::quiet_NaN();
  OnEveryRank(3, [&](int rank, std::unique_ptr<comm::Communicator> communicator) {
    auto strategy = *PipelineOf(course, std::move(communicator));
    ASSERT_TRUE(strategy->Synchronize(InAMoment()).ok());
    const auto before = strategy->buckets()[0]->values().clone();
    const auto result = strategy->Step(samples.PartOf(0, strategy->layout()), kRate, InAMoment());
    EXPECT_EQ(result.status().code(), absl::StatusCode::kOutOfRange) << rank;
    EXPECT_THAT(std::string(result.status().message()), HasSubstr("the loss of rank 2 is nan"));
    EXPECT_TRUE(torch::equal(strategy->buckets()[0]->values(), before));
  });
}

TEST(PipelineParallel, WhatOneRankAsksAllHear) {
  const Course course{.stages = 2, .steps = 1};
  const StagedSamples samples(1, course.samples);
  OnEveryRank(2, [&](int rank, std::unique_ptr<comm::Communicator> communicator) {
    auto strategy = *PipelineOf(course, std::move(communicator));
    ASSERT_TRUE(strategy->Synchronize(InAMoment()).ok());
    if (rank == 1) strategy->RequestStop();
    const auto result = strategy->Step(samples.PartOf(0, strategy->layout()), kRate, InAMoment());
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_TRUE(result->stop);
  });
}

// Rank 1 leaves; its neighbours and who has no pair with it name it, and its stage.
TEST(PipelineParallel, ALostStageIsNamedByAllOthers) {
  const Course course{.stages = 4};
  const StagedSamples samples(1, course.samples);
  OnEveryRank(4, [&](int rank, std::unique_ptr<comm::Communicator> communicator) {
    auto strategy = *PipelineOf(course, std::move(communicator));
    ASSERT_TRUE(strategy->Synchronize(InAMoment()).ok());
    ASSERT_TRUE(strategy->Step(samples.PartOf(0, strategy->layout()), kRate, InAMoment()).ok());
    if (rank == 1) return;
    const auto result = strategy->Step(samples.PartOf(0, strategy->layout()), kRate, InAMoment());
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(comm::LostRank(result.status()), 1) << rank << ": " << result.status();
    EXPECT_THAT(std::string(result.status().message()), HasSubstr("stage 1 of 4"));
  });
}

TEST(PipelineParallel, ACutThatIsNoneIsRefused) {
  OnEveryRank(1, [&](int, std::unique_ptr<comm::Communicator> alone) {
    for (const Cut& cut : {Cut{0, 2}, Cut{1}, Cut{}}) {
      models::Model whole = Make(Net::kResidual);
      auto made =
          PipelineParallel::Create(std::move(whole), std::move(alone), {.cut = cut}, InAMoment());
      EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument) << cut.size();
    }
  });
}

TEST(Layout, StagesAreRowsOfReplicas) {
  const auto layout = LayOut({.data = 3, .pipeline = 2}, 4, 6);
  ASSERT_TRUE(layout.ok());
  EXPECT_EQ(layout->stage(), 1);
  EXPECT_EQ(layout->replica(), 1);
  EXPECT_EQ(layout->RankAt(kStageAxis, 0), 1);
  EXPECT_EQ(layout->IndexOf(kStageAxis, 5), 1);
  EXPECT_EQ(layout->Along(kDataAxis), (std::vector<int>{3, 4, 5}));
  EXPECT_EQ(layout->Along(kStageAxis), (std::vector<int>{1, 4}));
  EXPECT_EQ(layout->Along("none"), std::vector<int>{4});
  const Layout server{
      .rank = 6, .world_size = 7, .role = Layout::Role::kServes, .axes = layout->axes};
  EXPECT_EQ(server.replica(), -1);
  EXPECT_FALSE(server.reads_inputs() || server.has_outputs());
  EXPECT_FALSE(layout->reads_inputs());
  EXPECT_TRUE(layout->has_outputs());
  EXPECT_EQ(LayOut({.pipeline = 2}, 0, 6)->replicas(), 3);
}

TEST(Layout, AMeshThatDoesNotFitTheRanksSaysWhatWould) {
  const auto said = [](const Mesh& mesh, int ranks) {
    return std::string(LayOut(mesh, 0, ranks).status().message());
  };
  EXPECT_EQ(
      said({.data = 2, .pipeline = 2}, 6),
      "--parallel: 2 stages x 2 replicas do not fit 6 ranks: start 4 ranks, or ask for data=3");
  EXPECT_EQ(said({.pipeline = 4}, 6),
            "--parallel: 4 stages of a pipeline do not fit 6 ranks: start 4 ranks");
  EXPECT_EQ(said({.pipeline = 2}, 1),
            "--parallel: 2 stages of a pipeline do not fit 1 rank: start 2 ranks");
}

}  // namespace
}  // namespace tutti::parallel
