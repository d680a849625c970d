// Covers: run_output.cc, run_state.cc, evaluation.cc, setup/batch_tensors.cc, setup/source.cc,
// setup/input.cc, setup/run_parts.cc, setup/agreement.cc, runtime/tasks/classification.cc.
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
#include "base/test_patience.h"
#include "runtime/checkpoint/model_folder.h"
#include "runtime/device/cpu/bf16/convolution_bf16.h"
#include "runtime/device/cpu/fp32/convolution_fp32.h"
#include "runtime/device/cpu/kept_memory.h"
#include "runtime/models/model.h"
#include "runtime/models/state.h"
#include "runtime/train/setup/batch_tensors.h"
#include "runtime/train/setup/input.h"
#include "runtime/train/trainer_fixture.h"

namespace tutti::train {
namespace {

using testing::HasSubstr;
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
  const absl::Cleanup restore = [] {
    device::cpu::UseWinograd(false);
    device::cpu::fp32::UsePatches(true);
  };
  const std::map<std::string, bool> has_others = {
      {"bf16", device::cpu::GoesByWinograd({8, 16, 16, 32, 32, 3})},
      {"fp32", device::cpu::fp32::CanCompute({8, 16, 16, 32, 32, 3})}};
  for (const auto& [precision, has] : has_others) {
    if (!has) continue;  // this processor's are exact
    Recipe fast = RecipeFor("fast-" + precision), exact = RecipeFor("exact-" + precision);
    fast.precision = exact.precision = precision;
    exact.winograd = false;
    ASSERT_TRUE(TrainOver(1, fast).ok());
    ASSERT_TRUE(TrainOver(1, exact).ok());
    EXPECT_NE(Weights(fast), Weights(exact)) << precision;
  }
  if (!has_others.at("fp32")) GTEST_SKIP() << "this processor's convolutions are exact";
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

TEST_F(TrainerTest, TestImagesAreNotFlipped) {
  const auto soon = [] { return base::Deadline::After(base::Patient(absl::Seconds(30))); };
  Recipe recipe = RecipeFor("none");
  for (const bool alternate : {false, true}) {
    recipe.alternate_flip = alternate;
    const auto input = OpenInput(recipe, {.size = kSide});
    ASSERT_TRUE(input.ok()) << input.status();
    std::vector<torch::Tensor> epochs;
    for (int epoch = 0; epoch < 2; ++epoch) {
      const auto batch = input->test->Next(soon());
      ASSERT_TRUE(batch.ok()) << batch.status();
      epochs.push_back(ImagesOf(*batch, input->evaluation, /*bf16=*/false).clone());
    }
    EXPECT_TRUE(torch::equal(epochs[0], epochs[1]));
  }
}

TEST_F(TrainerTest, BeginsFromTheWeightsThatFitAndNamesWhatBeginsAtRandom) {
  Recipe first = RecipeFor("taught");
  first.epochs = 1;
  ASSERT_TRUE(TrainOver(1, first).ok());
  const fs::path model = fs::path(first.output) / "model", five = outputs_.path() / "five";
  WriteImageFolder(five, kImages, 30, 5, kSide);
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
    TrainerContext context;
    context.out = open_memstream(&said, &size);
    const auto outcome = TrainOver(2, recipe, context);
    std::fclose(context.out);
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
  auto input = *OpenInput(recipe, {.size = kSide});
  const auto batch = *input.test->Next(base::Deadline::After(base::Patient(absl::Seconds(30))));
  const torch::Tensor images = ImagesOf(batch, input.evaluation, false);
  const torch::Tensor mean = (model->forward(images) + model->forward(images.flip(3))) / 2;
  const auto hits = mean.argmax(1).eq(LabelsOf(batch)).sum().item<double>();
  ASSERT_EQ(batch.count, 30);
  EXPECT_DOUBLE_EQ(tasks::Value(trained->metrics, "top1_mirrored"), hits / 30);
}

// Images change places within pairs, and their labels with them.
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
  recipe.data = outputs_.path() / "images";
  recipe.input_size = 32;
  WriteImageFolder(recipe.data, 70, 30, 3);
  recipe.max_steps = 6;
  recipe.lr = 0.001;           // the higher, the more training amplifies rounding
  recipe.warmup_epochs = 0.5;  // 2 steps
  ASSERT_TRUE(TrainOver(1, recipe).ok());

  auto input = *OpenInput(recipe, {.size = 32});
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
    const auto batch = *input.train->Next(base::Deadline::After(base::Patient(absl::Seconds(30))));
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

// The activations of a step are the last step's, also over an evaluation and a checkpoint.
TEST_F(TrainerTest, AStepAsksTheSystemForNoMemory) {
  std::map<int64_t, size_t> mappings;
  TrainerContext context;
  context.step_done = [&](int64_t step) { mappings[step] = device::MeasureKeptMemory().mappings; };
  Recipe recipe = RecipeFor("memory");
  recipe.data = outputs_.path() / "images";
  WriteImageFolder(recipe.data, 70, 30, 3);
  recipe.input_size = 32;
  recipe.batch = 32;  // 2 MB in each of the first layers
  recipe.epochs = 3;
  ASSERT_TRUE(TrainOver(1, recipe, context).ok());
  ASSERT_EQ(mappings.size(), 6u);
  EXPECT_GT(mappings.at(1), 0u);
  EXPECT_EQ(mappings.at(2), mappings.at(1)) << "within an epoch";
  for (int64_t step = 4; step <= 6; ++step) EXPECT_EQ(mappings.at(step), mappings.at(3)) << step;
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
