#include "runtime/train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/sgd.h>

#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/cleanup/cleanup.h"
#include "base/file.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/model_folder.h"
#include "runtime/device/cpu/convolution.h"
#include "runtime/device/cpu/kept_memory.h"
#include "runtime/device/device.h"
#include "runtime/models/model.h"
#include "runtime/models/state.h"
#include "runtime/train/batch_tensors.h"
#include "runtime/train/input.h"
#include "runtime/train/trainer_fixture.h"

namespace tutti::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

TEST_F(TrainerTest, SameSeedAndRanksGiveTheSameBytes) {
  for (const char* precision : {"fp32", "bf16"}) {
    Recipe a = RecipeFor(std::string("a-") + precision),
           b = RecipeFor(std::string("b-") + precision);
    a.precision = b.precision = precision;
    a.workers = 1, b.workers = 2;  // must not matter
    ASSERT_TRUE(TrainOver(2, a).ok());
    ASSERT_TRUE(TrainOver(2, b).ok());
    EXPECT_EQ(Weights(a), Weights(b)) << precision;
  }
  Recipe other = RecipeFor("other");
  other.seed = 2;
  ASSERT_TRUE(TrainOver(2, other).ok());
  EXPECT_NE(Weights(RecipeFor("a-fp32")), Weights(other));
}

TEST_F(TrainerTest, ARecipeCanHaveExactProducts) {
  device::cpu::UseWinograd(true);
  const absl::Cleanup restore = [] { device::cpu::UseWinograd(true); };
  if (!device::cpu::GoesByWinograd({8, 16, 16, 32, 32, 3})) {
    GTEST_SKIP() << "this processor's convolutions are exact";
  }
  Recipe fast = RecipeFor("fast"), exact = RecipeFor("exact");
  fast.precision = exact.precision = "bf16";
  exact.winograd = false;
  ASSERT_TRUE(TrainOver(1, fast).ok());
  ASSERT_TRUE(TrainOver(1, exact).ok());
  EXPECT_NE(Weights(fast), Weights(exact));
}

TEST_F(TrainerTest, TheLastEpochsDoWithoutErasing) {
  const Recipe plain = RecipeFor("plain");
  ASSERT_TRUE(TrainOver(1, plain).ok());
  for (const int64_t epochs : {0, 1, 2}) {
    Recipe recipe = RecipeFor("erased-" + std::to_string(epochs));
    recipe.erase = 1;
    recipe.plain_epochs = epochs;
    ASSERT_TRUE(TrainOver(1, recipe).ok());
    EXPECT_EQ(Weights(recipe) == Weights(plain), epochs == recipe.epochs) << epochs;
  }
  EXPECT_NE(Weights(RecipeFor("erased-0")), Weights(RecipeFor("erased-1")));
  Recipe shorter = RecipeFor("shorter"), erased = RecipeFor("shorter-erased");
  shorter.max_steps = erased.max_steps = 2;  // of the first epoch, which then is the last
  erased.erase = 1;
  erased.plain_epochs = 1;
  ASSERT_TRUE(TrainOver(1, shorter).ok());
  ASSERT_TRUE(TrainOver(1, erased).ok());
  EXPECT_EQ(Weights(shorter), Weights(erased));
}

TEST_F(TrainerTest, BeginsFromTheWeightsThatFitAndNamesWhatBeginsAtRandom) {
  Recipe first = RecipeFor("taught");
  first.epochs = 1;
  ASSERT_TRUE(TrainOver(1, first).ok());
  const fs::path model = fs::path(first.output) / "model", five = outputs_.path() / "five";
  WriteImageFolder(five, kPictures, 30, 5, kSide);
  const auto taught = checkpoint::ReadModelFolder(model);
  ASSERT_TRUE(taught.ok()) << taught.status();
  for (const fs::path& weights : {model, model / "model.safetensors"}) {
    Recipe recipe = RecipeFor(weights.filename());
    recipe.weights = weights;
    recipe.data = five;
    recipe.epochs = 1;
    recipe.lr = 0;
    recipe.ema = 0.9;
    char* said = nullptr;
    size_t size = 0;
    Surroundings surroundings;
    surroundings.out = open_memstream(&said, &size);
    const auto outcome = TrainOver(2, recipe, surroundings);
    std::fclose(surroundings.out);
    EXPECT_THAT(std::string(said, size), HasSubstr("weights from " + weights.string() +
                                                   "; at random begin fc.bias, fc.weight\n"));
    std::free(said);
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    const auto trained = checkpoint::ReadModelFolder(fs::path(recipe.output) / "model");
    ASSERT_TRUE(trained.ok()) << trained.status();
    for (const auto& [name, tensor] : taught->tensors) {
      const auto& now = trained->tensors.at(name);
      if (name.starts_with("fc.")) {
        EXPECT_EQ(now.size(0), 5);
      } else if (!name.ends_with("running_mean") && !name.ends_with("running_var") &&
                 !name.ends_with("num_batches_tracked")) {
        EXPECT_TRUE(now.equal(tensor)) << name;
      }
    }
  }
}

TEST_F(TrainerTest, WeightsThatAreNoneOfTheModelsAreNamed) {
  Recipe first = RecipeFor("deeper");
  first.model = "resnet32";
  first.max_steps = 1;
  ASSERT_TRUE(TrainOver(1, first).ok());
  const auto error_of = [&](const fs::path& weights) {
    Recipe recipe = RecipeFor("wrong");
    recipe.weights = weights;
    const auto outcome = TrainOver(1, recipe);
    EXPECT_FALSE(fs::exists(recipe.output));
    return std::string(outcome.status().message());
  };
  EXPECT_THAT(error_of(fs::path(first.output) / "model"),
              AllOf(HasSubstr("deeper/model"), HasSubstr("the model has no layer1.3.bn1.bias")));
  EXPECT_THAT(error_of("/nowhere.safetensors"), HasSubstr("/nowhere.safetensors"));
  EXPECT_THAT(error_of(first.output), HasSubstr(first.output));
  const fs::path pickle = outputs_.path() / "resnet20.pth";
  ASSERT_TRUE(base::WriteFileAtomic(pickle, "PK a state dict of torch.save").ok());
  EXPECT_THAT(error_of(pickle), AllOf(HasSubstr(pickle.string()), HasSubstr("save_file")));
}

TEST_F(TrainerTest, ARankWithAnotherRecipeOrOtherDataIsNamedByAll) {
  WriteImageFolder(outputs_.path() / "other", kPictures, 31, 3, kSide);
  const auto errors = [&](const std::function<void(Recipe&)>& change) {
    std::array<std::string, 3> messages;
    parallel::OnEveryRank(3, [&](int rank, std::unique_ptr<comm::Communicator> communicator) {
      Recipe recipe = RecipeFor("agreement");
      if (rank == 1) change(recipe);
      const auto outcome = Train(recipe, std::move(communicator), {});
      EXPECT_EQ(outcome.status().code(), absl::StatusCode::kInvalidArgument);
      messages[static_cast<size_t>(rank)] = std::string(outcome.status().message());
    });
    return messages;
  };
  EXPECT_THAT(errors([](Recipe& r) { r.epochs = 3; }),
              testing::Each("rank 1 has another recipe than rank 0"));
  EXPECT_THAT(errors([&](Recipe& r) { r.data = outputs_.path() / "other"; }),
              testing::Each("rank 1 has other test images than rank 0"));
}

TEST_F(TrainerTest, MetricsTellTheRunAndTheStepsPartsAddUp) {
  Recipe recipe = RecipeFor("metrics");
  Surroundings surroundings;
  surroundings.metrics_file = outputs_.path() / "job-metrics.jsonl";
  const auto outcome = TrainOver(2, recipe, surroundings);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  const fs::path own = fs::path(recipe.output) / "metrics.jsonl";
  EXPECT_EQ(*base::ReadFile(own), *base::ReadFile(surroundings.metrics_file));

  const auto start = Events(own, "start");
  ASSERT_EQ(start.size(), 1u);
  EXPECT_EQ(start[0]["world_size"], 2);
  EXPECT_EQ(start[0]["steps"], 2 * kStepsPerEpoch);
  const auto steps = Events(own, "step");
  ASSERT_FALSE(steps.empty());
  EXPECT_EQ(steps.back()["step"], 2 * kStepsPerEpoch);
  for (const auto& step : steps) {
    double sum = 0;
    for (const char* part :
         {"data", "forward", "backward", "communication", "optimizer", "other"}) {
      EXPECT_GE(step[part].get<double>(), 0) << part;
      sum += step[part].get<double>();
    }
    EXPECT_NEAR(16 / sum, step["images_per_second"].get<double>(), 1e-6 / sum);
  }
  EXPECT_EQ(Events(own, "evaluation").size(), 2u);
  EXPECT_EQ(Events(own, "checkpoint").size(), 2u);
  const auto result = Events(own, "result");
  ASSERT_EQ(result.size(), 1u);
  EXPECT_EQ(result[0]["images"], 30);
  EXPECT_EQ(result[0]["top1"], tasks::Value(outcome->metrics, "top1"));
  EXPECT_EQ(result[0]["model"], (fs::path(recipe.output) / "model").string());
}

TEST_F(TrainerTest, TheModelFolderHoldsWhatScoringNeeds) {
  Recipe recipe = RecipeFor("model");
  recipe.epochs = 1;
  recipe.torchscript = true;
  ASSERT_TRUE(TrainOver(1, recipe).ok());
  const auto model = checkpoint::ReadModelFolder(fs::path(recipe.output) / "model");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->architecture, "resnet20");
  EXPECT_EQ(model->classes, (std::vector<std::string>{"class-0", "class-1", "class-2"}));
  EXPECT_EQ(model->input.height, kSide);
  EXPECT_TRUE(fs::exists(fs::path(recipe.output) / "model" / "model.pt"));
  EXPECT_NEAR(model->input.mean[0], 0.4914, 1e-6);
}

TEST_F(TrainerTest, EvaluationIsTheSameForEveryNumberOfRanks) {
  Recipe recipe = RecipeFor("trained");
  const auto trained = TrainOver(1, recipe);
  ASSERT_TRUE(trained.ok());
  EXPECT_EQ(tasks::Value(trained->metrics, "top5"), 1) << "of three classes";
  EXPECT_LT(tasks::Value(trained->metrics, "top1"), 1);
  for (int ranks : {2, 3}) {  // nothing left to train: only the evaluation
    recipe.resume = "latest";
    const auto evaluated = TrainOver(ranks, recipe);
    ASSERT_TRUE(evaluated.ok()) << evaluated.status();
    EXPECT_EQ(evaluated->meter.total_steps(), 0);
    for (const char* metric : {"top1", "top5"}) {
      EXPECT_EQ(tasks::Value(evaluated->metrics, metric), tasks::Value(trained->metrics, metric));
    }
  }
}

TEST_F(TrainerTest, MirroredEvaluationIsTheMeanOfTwoOutputs) {
  Recipe recipe = RecipeFor("mirrored");
  recipe.mixup = 0.2;
  recipe.evaluate_mirrored = true;
  const auto trained = TrainOver(2, recipe);
  ASSERT_TRUE(trained.ok()) << trained.status();
  EXPECT_EQ(trained->metrics.at(0).name, "top1");

  const auto folder = *checkpoint::ReadModelFolder(fs::path(recipe.output) / "model");
  const auto model = *models::MakeModel({recipe.model, 3}, 9);
  ASSERT_TRUE(models::LoadState(folder.tensors, *model).ok());
  model->eval();
  const torch::NoGradGuard no_grad;
  auto input = *OpenInput(recipe, {.size = kSide}, 0, 1);
  const auto batch = *input.test->Next(base::Deadline::After(absl::Seconds(30)));
  const torch::Tensor images = ImagesOf(batch, input.evaluation, false);
  const torch::Tensor mean = (model->forward(images) + model->forward(images.flip(3))) / 2;
  const auto hits = mean.argmax(1).eq(LabelsOf(batch)).sum().item<double>();
  ASSERT_EQ(batch.count, 30);
  EXPECT_DOUBLE_EQ(tasks::Value(trained->metrics, "top1_mirrored"), hits / 30);
}

// Pictures change places within pairs, and their labels with them.
TEST_F(TrainerTest, MixedLabelsAreSharesOfAPair) {
  const std::array<int64_t, 3> labels = {2, 0, 1};
  const torch::Tensor shares =
      MixedLabelsOf({.count = 3, .labels = labels.data(), .own_share = 0.75f}, 3);
  EXPECT_TRUE(shares.equal(
      torch::tensor({{0.25f, 0.0f, 0.75f}, {0.75f, 0.0f, 0.25f}, {0.0f, 1.0f, 0.0f}})));
}

// Against libtorch's own optimizer and a schedule written out: what no comparison of two runs of
// the trainer would show.
TEST_F(TrainerTest, ARunIsThePlainLoopOfForwardBackwardAndDescent) {
  Recipe recipe = RecipeFor("plain");
  recipe.data = outputs_.path() / "pictures";
  recipe.input_size = 32;
  WriteImageFolder(recipe.data, 70, 30, 3);
  recipe.max_steps = 6;
  recipe.lr = 0.001;           // the higher, the more training amplifies rounding
  recipe.warmup_epochs = 0.5;  // 2 steps
  ASSERT_TRUE(TrainOver(1, recipe).ok());

  auto input = *OpenInput(recipe, {.size = 32}, 0, 1);
  auto model = *models::MakeModel({recipe.model, 3}, 1);
  const auto initial = *models::MakeModel({recipe.model, 3}, 1);
  torch::optim::SGD descent(model->parameters(), torch::optim::SGDOptions(0.001)
                                                     .momentum(recipe.momentum)
                                                     .weight_decay(recipe.weight_decay)
                                                     .nesterov(true));
  for (int step = 0; step < 6; ++step) {
    const double rate =
        step < 2 ? 0.001 * (step + 1) / 3 : 0.001 * (1 + std::cos(M_PI * (step - 2) / 4)) / 2;
    static_cast<torch::optim::SGDOptions&>(descent.param_groups()[0].options()).lr(rate);
    const auto batch = *input.train->Next(base::Deadline::After(absl::Seconds(30)));
    descent.zero_grad();
    torch::cross_entropy_loss(model->forward(ImagesOf(batch, input.evaluation, false)),
                              LabelsOf(batch))
        .backward();
    descent.step();
  }
  const auto trained = checkpoint::ReadModelFolder(fs::path(recipe.output) / "model");
  ASSERT_TRUE(trained.ok()) << trained.status();
  double difference = 0, way = 0;
  for (const auto& parameter : model->named_parameters()) {
    const auto ours = trained->tensors.at(parameter.key());
    difference += (ours - parameter.value()).square().sum().item<double>();
    const auto& start = initial->named_parameters()[parameter.key()];
    way += (start - parameter.value()).square().sum().item<double>();
  }
  EXPECT_GT(way, 0);
  // Weights that begin one rounding away end at 0.004 of the way.
  EXPECT_LT(std::sqrt(difference / way), 0.03) << "of the way that the parameters went";
}

TEST_F(TrainerTest, ALossThatIsNotFiniteNamesStepAndRankAndKeepsTheLastCheckpoint) {
  Recipe recipe = RecipeFor("diverged");
  recipe.lr = 1e30;
  recipe.checkpoint_every_steps = 1;
  const auto outcome = TrainOver(2, recipe);
  EXPECT_EQ(outcome.status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(
      std::string(outcome.status().message()),
      testing::MatchesRegex("step [23] \\(epoch 1\\): the loss of rank [01] is -?(nan|inf)"));
  const auto kept =
      checkpoint::CheckpointFolder(fs::path(recipe.output) / "checkpoints", 2).LoadNewest();
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_GE(kept->checkpoint.step, 1);
  EXPECT_TRUE(kept->checkpoint.model.at("conv1.weight").isfinite().all().item<bool>());
}

TEST_F(TrainerTest, WrongInputIsAClearErrorBeforeAnythingIsWritten) {
  const auto error_of = [&](int ranks, const std::function<void(Recipe&)>& change) {
    Recipe recipe = RecipeFor("wrong");
    change(recipe);
    const auto outcome = TrainOver(ranks, recipe);
    EXPECT_FALSE(outcome.ok());
    EXPECT_FALSE(fs::exists(recipe.output));
    return std::string(outcome.status().message());
  };
  EXPECT_THAT(error_of(1, [](Recipe& r) { r.data = "/nowhere/data"; }), HasSubstr("/nowhere/data"));
  EXPECT_THAT(error_of(1, [](Recipe& r) { r.model = "resnet21"; }),
              HasSubstr("no model \"resnet21\" (did you mean \"resnet20\"?)"));
  EXPECT_THAT(error_of(2, [](Recipe& r) { r.batch = 1; }),
              HasSubstr("smaller than the number of ranks"));
  EXPECT_THAT(error_of(1, [](Recipe& r) { r.batch = kPictures + 1; }),
              HasSubstr("larger than the 54 training"));
}

// Batch-norm over one picture a channel, convolutions over none: what libtorch says names no
// option.
TEST_F(TrainerTest, PicturesTooSmallForTheNetworkAreSaidBeforeTheFirstStep) {
  Recipe recipe = RecipeFor("small");
  recipe.model = "inception_v3";
  recipe.input_size = 32;
  const absl::Status status = TrainOver(1, recipe).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("inception_v3: it takes no pictures of 32 x 32 pixels"),
                    HasSubstr("give a larger --input-size"), Not(HasSubstr("\n"))));
}

// The activations of a step are the last step's, also over an evaluation and a checkpoint.
TEST_F(TrainerTest, AStepAsksTheSystemForNoMemory) {
  std::map<int64_t, size_t> mappings;
  Surroundings surroundings;
  surroundings.step_done = [&](int64_t step) {
    mappings[step] = device::MeasureKeptMemory().mappings;
  };
  Recipe recipe = RecipeFor("memory");
  recipe.data = outputs_.path() / "pictures";
  WriteImageFolder(recipe.data, 70, 30, 3);
  recipe.input_size = 32;
  recipe.batch = 32;  // 2 MB in each of the first layers
  recipe.epochs = 3;
  ASSERT_TRUE(TrainOver(1, recipe, surroundings).ok());
  ASSERT_EQ(mappings.size(), 6u);
  EXPECT_GT(mappings.at(1), 0u);
  EXPECT_EQ(mappings.at(2), mappings.at(1)) << "within an epoch";
  for (int64_t step = 4; step <= 6; ++step) EXPECT_EQ(mappings.at(step), mappings.at(3)) << step;
}

TEST_F(TrainerTest, AGpuAskedForWhereThereIsNoneIsSaid) {
  if (device::Open("cuda").ok()) GTEST_SKIP() << "there is one";
  Recipe recipe = RecipeFor("gpu");
  recipe.device = "cuda";
  const auto outcome = TrainOver(1, recipe);
  EXPECT_TRUE(absl::IsFailedPrecondition(outcome.status())) << outcome.status();
  EXPECT_THAT(std::string(outcome.status().message()),
              HasSubstr("there is no GPU to compute on: "));
}

TEST_F(TrainerTest, TellsWhereTheTimeOfEveryRankGoes) {
  Recipe recipe = RecipeFor("diagnosis");
  recipe.trace = outputs_.path() / "traces" / "trace.json";  // in a new folder
  recipe.tensorboard = outputs_.path() / "events";
  recipe.epochs = 1;
  ASSERT_TRUE(TrainOver(2, recipe).ok());

  const fs::path metrics = fs::path(recipe.output) / "metrics.jsonl";
  const auto compared = Events(metrics, "ranks"), result = Events(metrics, "result");
  ASSERT_EQ(compared.size(), 1u) << "at the end of the epoch";
  EXPECT_EQ(compared[0]["over_steps"], kStepsPerEpoch);
  for (const auto& line : {compared[0], result.at(0)}) {
    ASSERT_EQ(line["ranks"].size(), 2u);
    for (const auto& rank : line["ranks"]) {
      EXPECT_EQ(rank.size(), kStepParts.size());
      for (const auto& part : rank) EXPECT_GE(part.get<double>(), 0);
      EXPECT_GT(rank["forward"], 0);
    }
  }

  // A process a rank; under each, every step's parts without a gap, and the collectives' thread.
  const auto trace = nlohmann::json::parse(base::ReadFile(recipe.trace).value());
  std::map<std::pair<int, std::string>, int> count;
  std::array<double, 2> end = {};
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const int rank = event["pid"];
    ++count[{rank, event["name"]}];
    if (event["cat"] != "step") continue;
    EXPECT_GE(event["ts"].get<double>(), end[rank] - 1) << event;
    end[rank] = event["ts"].get<double>() + event["dur"].get<double>();
  }
  for (int rank : {0, 1}) {
    for (const StepPart& part : kStepParts) {
      EXPECT_EQ((count[{rank, std::string(part.name)}]), kStepsPerEpoch);
    }
    EXPECT_GE((count[{rank, "all-reduce"}]), 2 * kStepsPerEpoch) << "buckets, and counts";
    EXPECT_EQ((count[{rank, "evaluation"}]), 1);
  }
  EXPECT_FALSE(fs::is_empty(recipe.tensorboard));
}

TEST_F(TrainerTest, ATraceThatCannotBeWrittenIsSaidBeforeTheFirstStep) {
  Recipe recipe = RecipeFor("no-trace");
  recipe.trace = folder_->path() / "data" / "classes.txt" / "trace.json";
  Surroundings surroundings;
  surroundings.step_done = [](int64_t) { ADD_FAILURE() << "trained"; };
  const absl::Status status = TrainOver(1, recipe, surroundings).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("data/classes.txt"));
}

class ExampleRecipe : public TrainerTest, public testing::WithParamInterface<const char*> {};

TEST_P(ExampleRecipe, TrainsTwoSteps) {
  Recipe recipe;
  ASSERT_TRUE(ReadRecipe(fs::path(TUTTI_EXAMPLES) / GetParam(), recipe).ok());
  const base::TemporaryDirectory few;
  WriteImageFolder(few.path(), 4, 2, 2);
  recipe.data = few.path();
  recipe.output = outputs_.path() / "example";
  recipe.max_steps = 2;
  if (models::InputSize(recipe.model) > 96)
    recipe.input_size = 96;  // the least that is ImageNet's way
  if (recipe.batch_per_rank > 0) {
    recipe.batch_per_rank = 2;
  } else {
    recipe.batch = 2;
  }
  recipe.checkpoint_every = 0;
  recipe.torchscript = false;
  const auto trained = TrainOver(1, recipe);
  ASSERT_TRUE(trained.ok()) << trained.status();
  EXPECT_EQ(trained->step, 2);
}

INSTANTIATE_TEST_SUITE_P(Files, ExampleRecipe,
                         testing::Values("imagenet/reference.yml", "imagenet/modern.yml",
                                         "cifar10/full.yml", "cifar10/code/recipe.yml"));

}  // namespace
}  // namespace tutti::train
