// Covers: setup/agreement.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/file.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/device/device.h"
#include "runtime/train/trainer.h"
#include "runtime/train/trainer_fixture.h"

namespace tutti::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

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
  WriteImageFolder(outputs_.path() / "other", kImages, 31, 3, kSide);
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
  EXPECT_THAT(error_of(1, [](Recipe& r) { r.batch = kImages + 1; }),
              HasSubstr("larger than the 54 training"));
}

// Batch-norm over one image a channel, convolutions over none: what libtorch says names no
// option.
TEST_F(TrainerTest, ImagesTooSmallForTheNetworkAreSaidBeforeTheFirstStep) {
  Recipe recipe = RecipeFor("small");
  recipe.model = "inception_v3";
  recipe.input_size = 32;
  const absl::Status status = TrainOver(1, recipe).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("inception_v3: it takes no images of 32 x 32 pixels"),
                    HasSubstr("give a larger --input-size"), Not(HasSubstr("\n"))));
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

}  // namespace
}  // namespace tutti::train
