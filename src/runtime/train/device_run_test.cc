// Whole runs on each device that there is: on a GPU they equal those of a CPU up to rounding, so
// that what is asked of them here holds on both.
// Covers: optimizer/optimizers.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <nlohmann/json.hpp>

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
};

TEST_P(DeviceRun, TheModelAndItsTorchScriptAnswerAlikeOnACpu) {
  Recipe recipe = RecipeHere("everything");
  recipe.precision = "bf16";
  recipe.keep_best = recipe.torchscript = recipe.evaluate_mirrored = true;
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

TEST_P(DeviceRun, ResumesWhereItStoppedWithEveryOptimizer) {
  for (const absl::string_view name : OptimizerNames()) {
    const std::string optimizer(name);
    Recipe whole = RecipeHere("whole-" + optimizer);
    whole.optimizer = optimizer;
    whole.nesterov = whole.optimizer == "sgd";
    Recipe parts = whole;
    parts.output = RecipeFor("parts-" + optimizer).output;
    ASSERT_TRUE(TrainOver(1, whole).ok());
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
    double distance = 0, norm = 0;
    for (const auto& [name, tensor] : resumed) {
      const torch::Tensor other = expected.at(name).to(torch::kFloat64);
      distance += (tensor.to(torch::kFloat64) - other).square().sum().item<double>();
      norm += other.square().sum().item<double>();
    }
    // On a GPU no two runs have the same bits: convolutions add in any order there, and AdamW makes
    // steps of the same length of gradients that are next to nothing.
    EXPECT_LE(std::sqrt(distance / norm), on_gpu() ? 5e-2 : 0) << optimizer;
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
