// Whole runs whose ranks hear of each other now and then, or of servers, or whose stages wait for
// nobody. Covers: setup/exchange_plan.cc, setup/decoupling_plan.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/train/setup/pipeline_plan.h"
#include "runtime/train/setup/run_parts.h"
#include "runtime/train/trainer_fixture.h"

namespace tutti::train {
namespace {

using testing::HasSubstr;

class AsynchronousRunTest : public TrainerTest {
 protected:
  Recipe RecipeOf(const std::string& output, const std::string& parallel) const {
    Recipe recipe = RecipeFor(output);
    EXPECT_TRUE(ReadParallelism(parallel, recipe.parallel).ok());
    if (recipe.parallel.mesh.servers > 0) recipe.batch = 8;
    return recipe;
  }
  std::string TrainOn(int ranks, const Recipe& recipe) {
    const auto outcome = TrainOver(ranks, recipe);
    EXPECT_TRUE(outcome.ok()) << outcome.status();
    return Weights(recipe);
  }
  // A run that begins at another one's checkpoint, and has its own where that one had, ends alike.
  void ExpectToGoOn(int ranks, Recipe recipe, int64_t at) {
    recipe.checkpoint_every_steps = at;
    Recipe whole = recipe;
    whole.output += "-whole";
    const std::string expected = TrainOn(ranks, whole);
    recipe.resume =
        (std::filesystem::path(whole.output) / "checkpoints" / absl::StrFormat("step-%08d", at));
    EXPECT_EQ(TrainOn(ranks, recipe), expected);
  }
};

TEST_F(AsynchronousRunTest, TheMeanAfterEachStepLearnsWhatDataParallelismLearns) {
  Recipe local = RecipeOf("local", "sync=local,every=1");
  local.momentum = 0;
  local.nesterov = false;
  local.max_steps = 2;  // rounding to fp32 grows through batch-norms
  Recipe parallel = local;
  parallel.output += "-parallel";
  parallel.parallel = {};
  TrainOn(2, local);
  TrainOn(2, parallel);
  const auto model = [](const Recipe& recipe) {
    return *checkpoint::ReadSafetensors(std::filesystem::path(recipe.output) /
                                        "model/model.safetensors");
  };
  const auto ours = model(local), theirs = model(parallel);
  double most = 0;
  for (const auto& [name, tensor] : theirs) {
    most = std::max(most, (ours.at(name) - tensor).abs().max().item<double>());
  }
  EXPECT_LT(most, 1e-3);
}

TEST_F(AsynchronousRunTest, DilocoGoesOnWhereItWas) {
  Recipe recipe = RecipeOf("diloco", "sync=diloco,every=4,fragments=2,delay=1,send=int8");
  recipe.optimizer = "adamw";
  recipe.nesterov = false;
  recipe.lr = 0.002;
  recipe.epochs = 4;
  recipe.keep_checkpoints = 100;
  ExpectToGoOn(2, recipe, 5);
}

TEST_F(AsynchronousRunTest, StagesThatGuessGoOnWhereTheyWere) {
  for (const char* const gradients : {"synthetic", "delayed"}) {
    Recipe recipe = RecipeOf(absl::StrCat("stages-", gradients),
                             absl::StrCat("pipeline=2,waiting=1,gradients=", gradients));
    recipe.cut = "layer2.0";
    recipe.optimizer = "adamw";
    recipe.nesterov = false;
    recipe.lr = 0.002;
    recipe.clip_norm = 1;
    recipe.epochs = 2;
    recipe.keep_checkpoints = 100;
    ExpectToGoOn(2, recipe, 3);
  }
}

// What stages that wait for nobody have learnt goes on as a pipeline, or on one rank.
TEST_F(AsynchronousRunTest, StagesGoOnInAnotherWay) {
  Recipe recipe = RecipeOf("another-pipeline", "pipeline=3,gradients=synthetic");
  recipe.epochs = 10;
  recipe.max_steps = 3;
  recipe.checkpoint_every_steps = 3;
  TrainOn(3, recipe);
  recipe.resume = "latest";
  for (const auto& [ranks, way] : {std::pair(2, "pipeline=2,gradients=delayed"),
                                   std::pair(2, "pipeline=2"), std::pair(1, "")}) {
    recipe.max_steps += 2;
    EXPECT_TRUE(ReadParallelism(way, recipe.parallel).ok());
    const auto outcome = TrainOver(ranks, recipe);
    ASSERT_TRUE(outcome.ok()) << way << ": " << outcome.status();
    EXPECT_EQ(outcome->step, recipe.max_steps);
  }
}

TEST_F(AsynchronousRunTest, StagesAndTheirPredictorsAreExplained) {
  Recipe recipe = RecipeOf("explained", "pipeline=3,gradients=synthetic,predictor=convolutions");
  recipe.precision = "fp32";
  const auto text = Explain(recipe, 3);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("3 stages that take batches of "));
  EXPECT_THAT(*text, HasSubstr("by the guess of a predictor (convolutions, told the labels)"));
  // A predictor stands behind each stage but the last.
  const std::vector<std::string> parts = absl::StrSplit(*text, "its predictor of ");
  EXPECT_EQ(parts.size(), 3u) << *text;
  EXPECT_THAT(*text, HasSubstr("activations, and as many bytes of gradients back"));
  recipe.parallel.decoupling.labels = "no";
  EXPECT_EQ(PredictorOf(recipe, "classification", 10)->classes, 0);
  recipe.parallel.decoupling.labels = "auto";
  EXPECT_EQ(PredictorOf(recipe, "classification", 10)->classes, 10);
  EXPECT_EQ(PredictorOf(recipe, "segmentation", 10)->classes, 0);
  recipe.parallel.decoupling.labels = "yes";
  EXPECT_THAT(PredictorOf(recipe, "segmentation", 10).status().message(),
              HasSubstr("labels=yes tells predictors an image's label, and segmentation has none"));
}

// New ranks begin from what the others have learnt, with an empty optimizer.
TEST_F(AsynchronousRunTest, DilocoGoesOnWithMoreRanksAndWithFewer) {
  Recipe recipe = RecipeOf("ranks", "sync=diloco,every=2");
  recipe.max_steps = 3;
  recipe.checkpoint_every_steps = 3;
  TrainOn(2, recipe);
  recipe.resume = "latest";
  recipe.max_steps = 5;
  recipe.checkpoint_every_steps = 5;
  EXPECT_FALSE(TrainOn(3, recipe).empty());
  recipe.max_steps = 6;
  recipe.epochs = 3;
  EXPECT_FALSE(TrainOn(1, recipe).empty());
}

TEST_F(AsynchronousRunTest, ServersInRoundsGoOnWhereTheyWere) {
  Recipe recipe = RecipeOf("rounds", "servers=2,staleness=0");
  recipe.optimizer = "adamw";
  recipe.nesterov = false;
  recipe.lr = 0.002;
  recipe.clip_norm = 1;
  recipe.keep_checkpoints = 100;
  ExpectToGoOn(4, recipe, 4);
}

// One worker alone sees what it has sent: no more than one process does.
TEST_F(AsynchronousRunTest, AWorkerAndServersLearnWhatOneProcessLearns) {
  for (const char* const optimizer : {"sgd", "adamw", "lars", "lamb"}) {
    Recipe served = RecipeOf(absl::StrCat("served-", optimizer), "servers=2,staleness=4");
    served.optimizer = optimizer;
    served.nesterov = false;
    Recipe one = served;
    one.output += "-one";
    one.parallel = {};
    EXPECT_EQ(TrainOn(3, served), TrainOn(1, one)) << optimizer;
  }
}

TEST_F(AsynchronousRunTest, WorkersComeAndGoBetweenRuns) {
  Recipe recipe = RecipeOf("workers", "servers=1,staleness=3");
  recipe.max_steps = 5;
  recipe.checkpoint_every_steps = 5;
  TrainOn(3, recipe);
  recipe.resume = "latest";
  recipe.max_steps = 9;
  TrainOn(5, recipe);
  recipe.parallel = {};  // and what servers had goes on with one process
  recipe.max_steps = 11;
  const auto outcome = TrainOver(1, recipe);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->step, 11);
}

// The optimizers of the ranks are not the one that the run had.
TEST_F(AsynchronousRunTest, ARunThatGoesOnInAnotherWaySaysSo) {
  Recipe recipe = RecipeOf("another", "");
  recipe.max_steps = 2;
  recipe.checkpoint_every_steps = 2;
  TrainOn(2, recipe);
  EXPECT_TRUE(ReadParallelism("sync=diloco,every=2", recipe.parallel).ok());
  recipe.resume = "latest";
  recipe.max_steps = 4;
  std::FILE* const out = std::tmpfile();
  const auto outcome = TrainOver(2, recipe, {.out = out});
  EXPECT_TRUE(outcome.ok()) << outcome.status();
  std::string said(static_cast<size_t>(std::ftell(out)), '\0');
  std::rewind(out);
  EXPECT_EQ(std::fread(said.data(), 1, said.size(), out), said.size());
  std::fclose(out);
  EXPECT_THAT(said, HasSubstr("the run had --parallel pipeline=1 up to step 2, and goes on with "
                              "pipeline=1,sync=diloco,every=2"));
}

// Workers have what servers hold before the first step, too.
TEST_F(AsynchronousRunTest, AFinishedRunIsEvaluatedAsItWas) {
  for (const char* const way :
       {"servers=2,staleness=2", "sync=diloco,every=4", "pipeline=3,gradients=delayed"}) {
    Recipe recipe = RecipeOf(way, way);
    const auto first = TrainOver(3, recipe);
    ASSERT_TRUE(first.ok()) << first.status();
    recipe.resume = "latest";
    const auto again = TrainOver(3, recipe);
    ASSERT_TRUE(again.ok()) << again.status();
    ASSERT_FALSE(first->metrics.empty());
    for (size_t i = 0; i < first->metrics.size(); ++i) {
      EXPECT_EQ(again->metrics[i].value, first->metrics[i].value) << way;
    }
  }
}

TEST_F(AsynchronousRunTest, AStoppedRunGoesOnToItsEnd) {
  for (const char* const way :
       {"servers=1,staleness=2", "sync=diloco,every=2", "pipeline=3,gradients=synthetic"}) {
    Recipe recipe = RecipeOf(way, way);
    recipe.epochs = 6;
    TrainerContext context;
    std::atomic<int64_t> done = 0;
    context.step_done = [&](int64_t step) { done = std::max<int64_t>(done, step); };
    context.stop_wanted = [&] { return done >= 3; };
    const auto stopped = TrainOver(3, recipe, context);
    ASSERT_TRUE(stopped.ok()) << stopped.status();
    EXPECT_TRUE(stopped->stopped) << way;
    recipe.resume = "latest";
    const auto whole = TrainOver(3, recipe);
    ASSERT_TRUE(whole.ok()) << whole.status();
    EXPECT_FALSE(whole->stopped);
    EXPECT_GT(whole->step, stopped->step);
  }
}

TEST_F(AsynchronousRunTest, ARunEndsWithAnExchange) {
  Recipe seldom = RecipeOf("seldom", "sync=diloco,every=50,delay=7"),
         once = RecipeOf("once", "sync=diloco,every=3");
  seldom.max_steps = once.max_steps = 3;
  EXPECT_EQ(TrainOn(2, seldom), TrainOn(2, once));
}

TEST_F(AsynchronousRunTest, RanksTellWhatTheyExchange) {
  const Recipe recipe = RecipeOf("told", "servers=1,staleness=2");
  TrainOn(3, recipe);
  const auto lines = Events(std::filesystem::path(recipe.output) / "metrics.jsonl", "ranks");
  ASSERT_FALSE(lines.empty());
  const auto& ranks = lines.back()["ranks"];
  ASSERT_EQ(ranks.size(), 3u);
  EXPECT_GT(ranks[0]["exchange_bytes"], 0);
  EXPECT_LE(ranks[1]["staleness_most"], 2);
  EXPECT_GT(ranks[2]["steps_per_second"], 0) << "of the server, which takes up every gradient";
  const auto curves = Events(std::filesystem::path(recipe.output) / "metrics.jsonl", "metric");
  const auto of_rank_1 = std::find_if(curves.rbegin(), curves.rend(), [](const auto& curve) {
    return curve["name"] == "staleness/rank1";
  });
  ASSERT_NE(of_rank_1, curves.rend());
  EXPECT_EQ((*of_rank_1)["value"], ranks[1]["staleness"]);
}

TEST_F(AsynchronousRunTest, WhatDoesNotGoTogetherIsRefused) {
  const auto error_of = [&](int ranks, const std::string& parallel,
                            const std::function<void(Recipe&)>& change) {
    Recipe recipe = RecipeOf("refused", parallel);
    change(recipe);
    return TrainOver(ranks, recipe).status().ToString();
  };
  const auto nothing = [](Recipe&) {};
  EXPECT_THAT(error_of(1, "servers=1,staleness=2", nothing),
              HasSubstr("1 worker and 1 server do not fit 1 rank: start 2 or more"));
  EXPECT_THAT(error_of(4, "servers=1,staleness=2,data=2", nothing),
              HasSubstr("2 workers and 1 server do not fit 4 ranks: start 3"));
  EXPECT_THAT(error_of(2, "sync=diloco", [](Recipe& r) { r.sync_bn = true; }),
              HasSubstr("--sync-bn does not go with --parallel sync=diloco"));
  EXPECT_THAT(error_of(2, "sync=local", [](Recipe& r) { r.compression = "int8"; }),
              HasSubstr("or say send=int8 there"));
  EXPECT_THAT(error_of(2, "servers=1,staleness=0", [](Recipe& r) { r.ema = 0.9; }),
              HasSubstr("--ema does not go with --parallel servers=1"));
  EXPECT_THAT(error_of(2, "pipeline=2,gradients=delayed", [](Recipe& r) { r.accumulation = 2; }),
              HasSubstr("--accumulation does not go with --parallel gradients=delayed"));
}

TEST_F(AsynchronousRunTest, ItIsExplained) {
  Recipe recipe = RecipeOf("explained", "sync=diloco,every=50,send=int8");
  auto said = Explain(recipe, 4);
  ASSERT_TRUE(said.ok()) << said.status();
  EXPECT_THAT(*said, HasSubstr("4 ranks train by themselves and take an outer step (rate 0.7, "
                               "momentum 0.9) every 50 steps: "));
  EXPECT_THAT(*said, HasSubstr(" an hour"));
  said = Explain(RecipeOf("explained", "servers=2,staleness=1"), 5);
  ASSERT_TRUE(said.ok()) << said.status();
  EXPECT_THAT(*said, HasSubstr("3 workers of 8 images a step and 2 servers; a gradient is at most "
                               "1 version late, so that 2 of the workers compute at a time"));
}

}  // namespace
}  // namespace tutti::train
