// Runs that go on where another ended.
// Covers: run_state.cc, setup/resolve.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/cleanup/cleanup.h"
#include "base/file.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/device/cpu/fp32/convolution_fp32.h"
#include "runtime/device/precision/detect.h"
#include "runtime/train/trainer_fixture.h"

namespace tutti::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

struct StopCase {
  int ranks;
  int64_t step;
  bool sync_bn;
  bool mixed = false;
  const char* optimizer = "sgd";
};

class Resume : public TrainerTest, public testing::WithParamInterface<StopCase> {};

TEST_P(Resume, GivesTheBytesOfARunWithoutInterruption) {
  const auto [ranks, step, sync_bn, mixed, optimizer] = GetParam();
  Recipe whole = RecipeFor("whole");
  whole.optimizer = optimizer;
  whole.nesterov = whole.optimizer == "sgd";
  whole.sync_bn = sync_bn;
  if (mixed) {
    whole.erase = 0.5;
    whole.alternate_flip = true;
    whole.mixup = whole.cutmix = 1;
    whole.plain_epochs = 1;  // of two
  }
  Recipe parts = whole;
  parts.output = RecipeFor("parts").output;
  ASSERT_TRUE(TrainOver(ranks, whole).ok());

  TrainerContext context;
  std::atomic<int64_t> done = 0;
  context.step_done = [&](int64_t steps) { done = steps; };
  context.stop_wanted = [&] { return done + 1 >= step; };
  const auto stopped = TrainOver(ranks, parts, context);
  ASSERT_TRUE(stopped.ok()) << stopped.status();
  EXPECT_TRUE(stopped->stopped);
  EXPECT_EQ(stopped->step, step);
  EXPECT_FALSE(fs::exists(fs::path(parts.output) / "model"));

  parts.resume = "latest";
  const auto finished = TrainOver(ranks, parts);
  ASSERT_TRUE(finished.ok()) << finished.status();
  EXPECT_FALSE(finished->stopped);
  EXPECT_EQ(finished->meter.total_steps(), 2 * kStepsPerEpoch - step);
  EXPECT_EQ(Weights(parts), Weights(whole));
  // A stop after an epoch's last step costs no evaluation, and none is made twice.
  const auto evaluated = Events(fs::path(parts.output) / "metrics.jsonl", "evaluation");
  ASSERT_EQ(evaluated.size(), 2u);
  EXPECT_EQ(evaluated[0]["step"], kStepsPerEpoch);
  EXPECT_EQ(evaluated[1]["step"], 2 * kStepsPerEpoch);
}

INSTANTIATE_TEST_SUITE_P(Stops, Resume,
                         testing::Values(StopCase{1, 3, false},  // at the end of an epoch
                                         StopCase{1, 2, false}, StopCase{2, 4, false},
                                         StopCase{2, 5, true}, StopCase{3, 1, false},
                                         StopCase{2, 4, false, true}, StopCase{2, 2, false, true},
                                         StopCase{2, 2, false, false, "adamw"},
                                         StopCase{2, 4, false, false, "lars"},
                                         StopCase{1, 2, false, false, "lamb"}));

// As a run that was begun on a machine without bf16 goes on.
TEST_F(TrainerTest, AResumedRunKeepsItsPrecisionUnlessToldOtherwise) {
  for (const char* precision : {"fp32", "bf16"}) {
    Recipe whole = RecipeFor(std::string("whole-") + precision),
           parts = RecipeFor(std::string("parts-") + precision);
    whole.precision = parts.precision = precision;
    ASSERT_TRUE(TrainOver(2, whole).ok());
    TrainerContext context;
    context.stop_wanted = [] { return true; };
    ASSERT_TRUE(TrainOver(2, parts, context).ok());
    parts.resume = "latest";
    parts.precision = "auto";
    ASSERT_TRUE(TrainOver(2, parts).ok());
    EXPECT_EQ(Weights(parts), Weights(whole)) << precision;
    const auto starts = Events(fs::path(parts.output) / "metrics.jsonl", "start");
    EXPECT_EQ(starts.back()["precision"], precision);
  }
  Recipe told = RecipeFor("told");
  told.resume = fs::path(RecipeFor("parts-bf16").output) / "checkpoints";
  ASSERT_TRUE(TrainOver(1, told).ok()) << "fp32";
  const auto starts = Events(fs::path(told.output) / "metrics.jsonl", "start");
  EXPECT_EQ(starts.back()["precision"], "fp32");
}

// Their default is another one for a network of tutti's.
TEST_F(TrainerTest, AResumedRunKeepsItsProductsUnlessToldOtherwise) {
  Recipe whole = RecipeFor("whole"), parts = RecipeFor("parts"), told = RecipeFor("told");
  whole.precision = parts.precision = told.precision = "bf16";
  whole.winograd = parts.winograd = false;
  ASSERT_TRUE(TrainOver(2, whole).ok());
  TrainerContext context;
  context.stop_wanted = [] { return true; };
  ASSERT_TRUE(TrainOver(2, parts, context).ok());
  const fs::path begun = fs::path(parts.output) / "checkpoints";
  parts.resume = "latest";
  parts.winograd = std::nullopt;
  told.resume = begun / "step-00000001";
  told.winograd = true;
  const auto taken_by = [&](const Recipe& recipe) {
    EXPECT_TRUE(TrainOver(2, recipe).ok());
    const checkpoint::CheckpointFolder folder(fs::path(recipe.output) / "checkpoints", 2);
    const auto state = folder.LoadState(2 * kStepsPerEpoch);
    EXPECT_TRUE(state.ok()) << state.status();
    return state.ok() ? (*state)["recipe"]["winograd"] : nlohmann::json();
  };
  EXPECT_EQ(taken_by(told), "true");
  EXPECT_EQ(taken_by(parts), "false");
  EXPECT_EQ(Weights(parts), Weights(whole));
}

TEST_F(TrainerTest, ARunResumedInAnotherPrecisionDoesNotKeepTheProductsOfTheFirst) {
  const absl::Cleanup restore = [] { device::cpu::fp32::UsePatches(true); };
  for (const char* begun : {"fp32", "bf16"}) {
    Recipe recipe = RecipeFor(std::string("begun-") + begun);
    recipe.precision = begun;
    recipe.winograd = false;
    TrainerContext context;
    context.stop_wanted = [] { return true; };
    ASSERT_TRUE(TrainOver(1, recipe, context).ok());
    recipe.resume = "latest";
    recipe.precision = "fp32";
    recipe.winograd = std::nullopt;
    ASSERT_TRUE(TrainOver(1, recipe).ok());
    const checkpoint::CheckpointFolder folder(fs::path(recipe.output) / "checkpoints", 2);
    const auto state = folder.LoadState(2 * kStepsPerEpoch);
    ASSERT_TRUE(state.ok()) << state.status();
    EXPECT_EQ((*state)["recipe"]["winograd"], begun == recipe.precision ? "false" : "true");
  }
}

TEST_F(TrainerTest, ACheckpointHoldsThePrecisionThatWasTaken) {
  Recipe recipe = RecipeFor("taken");
  recipe.precision = "auto";
  recipe.checkpoint_every_steps = 1;
  recipe.max_steps = 1;
  ASSERT_TRUE(TrainOver(1, recipe).ok());
  const checkpoint::CheckpointFolder folder(fs::path(recipe.output) / "checkpoints", 1);
  const auto state = folder.LoadState(1);
  ASSERT_TRUE(state.ok()) << state.status();
  const bool bf16 = device::Choose(device::FactsOf(torch::kCPU)).bf16;
  EXPECT_EQ((*state)["recipe"]["precision"], bf16 ? "bf16" : "fp32");
  EXPECT_EQ((*state)["recipe"]["winograd"], "true");
  EXPECT_EQ(folder.LoadState(2).status().code(), absl::StatusCode::kNotFound);
}

// At a checkpoint that the whole run makes too: what compression keeps back is part of both.
TEST_F(TrainerTest, ACompressedRunResumedFromACheckpointGivesTheBytesOfOneWithoutInterruption) {
  const Recipe plain = RecipeFor("plain");
  ASSERT_TRUE(TrainOver(3, plain).ok());
  for (const char* compression : {"int8", "bf16"}) {
    Recipe whole = RecipeFor(std::string("whole-") + compression),
           parts = RecipeFor(std::string("parts-") + compression);
    whole.compression = parts.compression = compression;
    ASSERT_TRUE(TrainOver(3, whole).ok());
    EXPECT_NE(Weights(whole), Weights(plain));

    TrainerContext context;
    std::atomic<int64_t> done = 0;
    context.step_done = [&](int64_t steps) { done = steps; };
    context.stop_wanted = [&] { return done + 1 >= kStepsPerEpoch; };
    ASSERT_TRUE(TrainOver(3, parts, context).ok());
    parts.resume = "latest";
    ASSERT_TRUE(TrainOver(3, parts).ok());
    EXPECT_EQ(Weights(parts), Weights(whole));
  }
}

TEST_F(TrainerTest, WhatMakesTheStepsToComeOthersIsSaid) {
  Recipe recipe = RecipeFor("otherwise");
  recipe.accumulation = 2;
  recipe.mixup = 0.2;
  TrainerContext stopping;
  stopping.stop_wanted = [] { return true; };
  ASSERT_TRUE(TrainOver(1, recipe, stopping).ok());
  recipe.resume = "latest";
  const auto told = [&] {
    const fs::path said = outputs_.path() / "said.txt";
    TrainerContext context = stopping;
    context.out = std::fopen(said.c_str(), "w");
    EXPECT_TRUE(TrainOver(1, recipe, context).ok());
    std::fclose(context.out);
    return base::ReadFile(said).value();
  };
  EXPECT_THAT(told(), Not(HasSubstr("goes on with")));
  recipe.accumulation = 1;
  recipe.mixup = 0;
  recipe.lr *= 0.1;  // as one does
  EXPECT_THAT(told(),
              AllOf(HasSubstr("the run had --accumulation 2 up to step 2, and goes on with 1"),
                    HasSubstr("the run had --mixup 0.2 up to step 2, and goes on with 0")));
}

// Those of before 2026-12 have no position of the sampler: it follows from the step.
TEST_F(TrainerTest, AnOlderCheckpointIsGoneOnFrom) {
  const Recipe whole = RecipeFor("whole");
  Recipe parts = RecipeFor("parts");
  ASSERT_TRUE(TrainOver(2, whole).ok());
  TrainerContext context;
  context.stop_wanted = [] { return true; };
  ASSERT_TRUE(TrainOver(2, parts, context).ok());
  checkpoint::CheckpointFolder folder(fs::path(parts.output) / "checkpoints", 1);
  checkpoint::Checkpoint saved = *folder.Load(1);
  ASSERT_EQ(saved.optimizer.erase("sampler.position"), 1u);
  ASSERT_TRUE(folder.Save(SourcesOf(saved)).ok());
  parts.resume = "latest";
  ASSERT_TRUE(TrainOver(2, parts).ok());
  EXPECT_EQ(Weights(parts), Weights(whole));
}

TEST_F(TrainerTest, ACompressedRunGoesOnWithAnotherNumberOfRanks) {
  Recipe recipe = RecipeFor("grows");
  recipe.compression = "int8";
  TrainerContext context;
  context.stop_wanted = [] { return true; };
  ASSERT_TRUE(TrainOver(2, recipe, context).ok());
  recipe.resume = "latest";
  const auto finished = TrainOver(3, recipe);
  ASSERT_TRUE(finished.ok()) << finished.status();
  EXPECT_EQ(finished->meter.total_steps(), 2 * kStepsPerEpoch - 1);
}

TEST_F(TrainerTest, ResumesFromANamedCheckpointAndRefusesAnotherRuns) {
  Recipe recipe = RecipeFor("first");
  ASSERT_TRUE(TrainOver(1, recipe).ok());
  const fs::path checkpoints = fs::path(recipe.output) / "checkpoints";
  Recipe again = RecipeFor("again");
  again.resume = checkpoints / "step-00000003";
  ASSERT_TRUE(TrainOver(2, again).ok()) << "on another number of ranks";

  const fs::path five_classes = outputs_.path() / "five-classes";
  WriteImageFolder(five_classes, kImages, 30, 5, kSide);
  for (const auto& [change, expected] :
       std::vector<std::pair<std::function<void(Recipe&)>, std::string>>{
           {[](Recipe& r) { r.seed = 9; }, "its seed is 1, this run's is 9"},
           {[](Recipe& r) { r.batch = 8; }, "its global_batch is 16"},
           {[](Recipe& r) { r.model = "resnet32"; },
            "its model is \"resnet20\", this run's is \"resnet32\"; the tensors are another "
            "model's: "
            "missing layer1.3.bn1.bias"},
           {[&](Recipe& r) { r.data = five_classes; },
            "of another shape fc.bias ([3], needs [5]), fc.weight ([3, 64], needs [5, 64])"},
           {[](Recipe& r) {
              r.optimizer = "adamw";
              r.nesterov = false;
            },
            "another optimizer: its run had \"sgd\", this one has \"adamw\""},
           {[](Recipe& r) { r.ema = 0.9; }, "\"average.bn1.bias\": its run had no --ema"}}) {
    Recipe other = RecipeFor("other");
    other.resume = checkpoints;
    change(other);
    const auto outcome = TrainOver(2, other);
    EXPECT_EQ(outcome.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(outcome.status().message()), HasSubstr(expected));
  }
}

// LARS's tensors have the names of SGD's, and LAMB's those of AdamW's.
TEST_F(TrainerTest, ACheckpointOfAnotherOptimizerIsRefused) {
  for (const auto& [theirs, ours] :
       std::vector<std::pair<std::string, std::string>>{{"sgd", "lars"}, {"lamb", "adamw"}}) {
    Recipe first = RecipeFor(theirs + "-before-" + ours);
    first.nesterov = false;
    first.epochs = 1;
    first.optimizer = theirs;
    ASSERT_TRUE(TrainOver(1, first).ok());
    Recipe again = first;
    again.epochs = 2;
    again.resume = "latest";
    again.optimizer = ours;
    const auto refused = TrainOver(2, again);
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(refused.status().message()),
                AllOf(HasSubstr("step-00000003: the checkpoint is of another optimizer"),
                      HasSubstr("its run had \"" + theirs + "\", this one has \"" + ours + "\""),
                      HasSubstr("--optimizer " + theirs + ","),
                      HasSubstr("start anew in another --output")));
    again.optimizer = theirs;
    EXPECT_TRUE(TrainOver(2, again).ok()) << theirs;
  }
}

// As other programs, or older ones, may have written it.
TEST_F(TrainerTest, TheTensorsTellTheOptimizerWhereTheCheckpointsRecipeDoesNot) {
  Recipe recipe = RecipeFor("untold");
  recipe.nesterov = false;
  recipe.epochs = 1;
  ASSERT_TRUE(TrainOver(1, recipe).ok());
  checkpoint::CheckpointFolder folder(fs::path(recipe.output) / "checkpoints", 1);
  checkpoint::Checkpoint saved = *folder.Load(kStepsPerEpoch);
  const nlohmann::json state = saved.state;
  recipe.epochs = 2;
  recipe.resume = "latest";
  const auto error_with = [&](const nlohmann::json& changed, const std::string& optimizer) {
    saved.state = changed;
    EXPECT_TRUE(folder.Save(SourcesOf(saved)).ok());
    recipe.optimizer = optimizer;
    TrainerContext context;
    context.stop_wanted = [] { return true; };
    return std::string(TrainOver(1, recipe, context).status().message());
  };
  nlohmann::json without = state;
  without.erase("recipe");
  const std::vector<nlohmann::json> foreign = {nullptr,
                                               "lars",
                                               nlohmann::json::array({1, 2}),
                                               nlohmann::json::object({{"lr", "0.1"}}),
                                               nlohmann::json::object({{"optimizer", 3}}),
                                               nlohmann::json::object({{"optimizer", ""}})};
  std::vector<nlohmann::json> untold = {without};
  for (const nlohmann::json& each : foreign) {
    untold.push_back(state);
    untold.back()["recipe"] = each;
  }
  for (const nlohmann::json& each : untold) {
    EXPECT_THAT(error_with(each, "lars"), HasSubstr("its run had \"sgd\", this one has \"lars\""))
        << each;
  }
  EXPECT_THAT(error_with(nlohmann::json::array(), "sgd"), HasSubstr("no JSON object"));
  EXPECT_EQ(error_with(without, "sgd"), "");
}

// As for other classes: at a learning rate of 0 what was begun with stays, on every rank.
TEST_F(TrainerTest, ARunIsNotResumedWithItsClassesRenamedOrInAnotherOrder) {
  Recipe recipe = RecipeFor("renamed");
  recipe.data = outputs_.path() / "images";
  recipe.epochs = 1;
  WriteImageFolder(recipe.data, kImages, 30, 3, kSide);
  ASSERT_TRUE(TrainOver(1, recipe).ok());
  const fs::path names = fs::path(recipe.data) / "classes.txt";
  const std::string before = *base::ReadFile(names);
  ASSERT_TRUE(base::WriteFileAtomic(names, "ant\nbee\ncow\n").ok());
  recipe.resume = "latest";
  recipe.epochs = 2;
  const auto refused = TrainOver(2, recipe);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  const std::string first = before.substr(0, before.find('\n'));
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("its class 0 is \"" + first + "\", this run's is \"ant\""));
  ASSERT_TRUE(base::WriteFileAtomic(names, before).ok());
  EXPECT_TRUE(TrainOver(2, recipe).ok());
}

TEST_F(TrainerTest, ResumeWithoutACheckpointBeginsAtTheStartOnlyForLatest) {
  Recipe recipe = RecipeFor("fresh");
  recipe.epochs = 1;
  recipe.resume = "latest";
  EXPECT_TRUE(TrainOver(1, recipe).ok());
  recipe = RecipeFor("elsewhere");
  recipe.resume = outputs_.path() / "nowhere";
  EXPECT_EQ(TrainOver(1, recipe).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(TrainerTest, DoesNotMixWithAnEarlierRunInTheSameFolder) {
  Recipe recipe = RecipeFor("twice");
  recipe.epochs = 1;
  ASSERT_TRUE(TrainOver(1, recipe).ok());
  const std::string weights = Weights(recipe);
  const auto refused = TrainOver(2, recipe);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.status().message()),
              AllOf(HasSubstr("checkpoints of an earlier run, up to step 3"), HasSubstr("--resume"),
                    HasSubstr("--output")));
  EXPECT_EQ(Weights(recipe), weights);
  recipe.resume = fs::path(recipe.output) / "checkpoints" / "step-00000003";
  EXPECT_TRUE(TrainOver(2, recipe).ok()) << "its own checkpoint, by name";
}

TEST_F(TrainerTest, AModelFolderThatIsNotItsOwnIsRefusedBeforeTheFirstStep) {
  Recipe recipe = RecipeFor("mine");
  const fs::path precious = fs::path(recipe.output) / "model" / "precious";
  ASSERT_TRUE(base::MakeDirectories(precious).ok());
  TrainerContext context;
  context.step_done = [](int64_t) { ADD_FAILURE() << "trained"; };
  const auto refused = TrainOver(1, recipe, context);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("not for tutti to replace"));
  EXPECT_TRUE(fs::exists(precious));
}

TEST_F(TrainerTest, AveragedWeightsAreSavedAndGoOnAfterAStop) {
  Recipe plain = RecipeFor("plain"), whole = RecipeFor("ema-whole"), parts = RecipeFor("ema-parts");
  whole.ema = parts.ema = 0.9;
  ASSERT_TRUE(TrainOver(1, plain).ok());
  ASSERT_TRUE(TrainOver(1, whole).ok());
  EXPECT_NE(Weights(plain), Weights(whole));

  TrainerContext context;
  std::atomic<int64_t> done = 0;
  context.step_done = [&](int64_t steps) { done = steps; };
  context.stop_wanted = [&] { return done >= 2; };
  ASSERT_TRUE(TrainOver(1, parts, context).ok());
  parts.resume = "latest";
  ASSERT_TRUE(TrainOver(1, parts).ok());
  EXPECT_EQ(Weights(parts), Weights(whole));
}

// Those that come with tutti, on a few images.
}  // namespace
}  // namespace tutti::train
