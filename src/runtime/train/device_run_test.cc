// Whole runs on each device that there is: on a GPU they equal those of a CPU up to rounding, so
// that what is asked of them here holds on both.
// Covers: optimizer/optimizers.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "runtime/checkpoint/model_folder.h"
#include "runtime/models/model.h"
#include "runtime/models/script_model.h"
#include "runtime/models/state.h"
#include "runtime/train/device_fixture.h"
#include "runtime/train/optimizer/optimizers.h"
#include "runtime/train/trainer_fixture.h"

namespace tutti::train {
namespace {

namespace fs = std::filesystem;

class DeviceRun : public OnDevice<TrainerTest> {
 protected:
  Recipe RecipeHere(const std::string& output) const {
    Recipe recipe = RecipeFor(output);
    recipe.device = GetParam();
    recipe.ema = 0.9;
    return recipe;
  }
  static absl::StatusOr<Outcome> StoppedAfterTwoSteps(int ranks, const Recipe& recipe) {
    std::atomic<int64_t> done = 0;
    TrainerContext context;
    context.step_done = [&](int64_t steps) { done = steps; };
    context.stop_wanted = [&] { return done >= 2; };
    return TrainOver(ranks, recipe, context);
  }
  static checkpoint::TensorMap TensorsOf(const fs::path& model) {
    const auto folder = checkpoint::ReadModelFolder(model);
    EXPECT_TRUE(folder.ok()) << folder.status();
    return folder.ok() ? folder->tensors : checkpoint::TensorMap();
  }
  // ||a - b|| over the parameters.
  static double Distance(const checkpoint::TensorMap& a, const checkpoint::TensorMap& b) {
    double sum = 0;
    for (const auto& [name, tensor] : a) {
      if (absl::StrContains(name, "running_") || absl::StrContains(name, "num_batches_")) continue;
      sum += (tensor.to(torch::kFloat64) - b.at(name)).square().sum().item<double>();
    }
    return std::sqrt(sum);
  }
};

TEST_P(DeviceRun, TheModelAndItsTorchScriptAnswerAlikeOnACpu) {
  Recipe recipe = RecipeHere("everything");
  recipe.precision = "bf16";
  recipe.keep_best = recipe.evaluate_mirrored = true;
  recipe.torchscript = true;
  recipe.evaluate_every = 1;
  recipe.mixup = recipe.cutmix = 0.5;
  recipe.label_smoothing = 0.1;
  const auto outcome = TrainOver(1, recipe);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  const fs::path output = recipe.output;
  EXPECT_EQ(Events(output / "metrics.jsonl", "start").at(0)["device"], GetParam());
  const auto evaluations = Events(output / "metrics.jsonl", "evaluation");
  ASSERT_EQ(evaluations.size(), 2u);
  for (const auto& evaluation : evaluations) EXPECT_GE(evaluation.at("top1_mirrored"), 0);

  torch::NoGradGuard no_grad;
  const torch::Tensor images = torch::randn({4, 3, kSide, kSide});
  for (const char* name : {"model", "best"}) {
    const auto model = models::MakeModel({recipe.model, 3}, std::nullopt);
    ASSERT_TRUE(model.ok()) << model.status();
    ASSERT_TRUE(models::LoadState(TensorsOf(output / name), **model).ok());
    const auto script = models::LoadScript(output / name / "model.pt");
    ASSERT_TRUE(script.ok()) << script.status();
    (*model)->eval();
    (*script)->eval();
    const torch::Tensor expected = (*model)->forward(images), given = (*script)->forward(images);
    EXPECT_TRUE(torch::allclose(given, expected, /*rtol=*/1e-3, /*atol=*/1e-3)) << name;
  }
}

// On a GPU no two runs have the same bits: convolutions add in any order there, and AdamW makes
// steps of the same length of gradients that are next to nothing. At the learning rate of the other
// tests, 0.05, two whole runs with AdamW ended 0.18 of all tensors' norm apart. At this one, on a
// CPU and over three seeds, convolutions that round otherwise move a run by 0.04 of its way at most
// and bf16 by 0.4, so half of it is more than chance; averages that were lost would be hundreds of
// ways off. (Figures of 2026-11-26; the bound has not been tried on a GPU since it is this one.)
// That moments were lost, 0.17 of the way, shows on the CPU alone, where bits are equal.
TEST_P(DeviceRun, ResumesWhereItStoppedWithEveryOptimizer) {
  for (const absl::string_view name : OptimizerNames()) {
    const std::string optimizer(name);
    Recipe whole = RecipeHere("whole-" + optimizer);
    whole.optimizer = optimizer;
    whole.nesterov = whole.optimizer == "sgd";
    whole.lr = 3e-4;
    Recipe still = whole, parts = whole;
    still.output = RecipeFor("still-" + optimizer).output;
    still.lr = 0;
    parts.output = RecipeFor("parts-" + optimizer).output;
    ASSERT_TRUE(TrainOver(1, whole).ok());
    ASSERT_TRUE(TrainOver(1, still).ok());
    const auto stopped = StoppedAfterTwoSteps(1, parts);
    ASSERT_TRUE(stopped.ok()) << stopped.status();
    ASSERT_TRUE(stopped->stopped);
    parts.resume = "latest";
    const auto finished = TrainOver(1, parts);
    ASSERT_TRUE(finished.ok()) << finished.status();
    EXPECT_EQ(finished->meter.total_steps(), 2 * kStepsPerEpoch - stopped->step);

    const auto expected = TensorsOf(fs::path(whole.output) / "model");
    const auto resumed = TensorsOf(fs::path(parts.output) / "model");
    ASSERT_EQ(resumed.size(), expected.size());
    const double way = Distance(TensorsOf(fs::path(still.output) / "model"), expected);
    EXPECT_GT(way, 0) << optimizer;
    EXPECT_LE(Distance(resumed, expected), on_gpu() ? way / 2 : 0) << optimizer;
    for (const auto& [name, tensor] : resumed) {
      EXPECT_TRUE(on_gpu() || tensor.equal(expected.at(name))) << optimizer << ": " << name;
    }
  }
}

// Also where every step is settled, so that no step hears of it by itself.
TEST_P(DeviceRun, StopsWhenOneOfTwoRanksAsksForIt) {
  for (const int64_t every : {0, 1}) {
    Recipe recipe = RecipeHere(std::string("stopped-") + std::to_string(every));
    recipe.epochs = 100;
    recipe.checkpoint_every_steps = every;
    const auto stopped = StoppedAfterTwoSteps(2, recipe);
    ASSERT_TRUE(stopped.ok()) << stopped.status();
    EXPECT_TRUE(stopped->stopped);
    EXPECT_LE(stopped->step, 10);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceRun, testing::Values("cpu", "cuda"));

}  // namespace
}  // namespace tutti::train
