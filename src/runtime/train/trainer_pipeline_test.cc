// Whole runs whose model lies on several ranks. Covers: whole_state.cc, setup/pipeline_plan.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "absl/strings/str_cat.h"
#include "runtime/parallel/pipeline/pipeline_parallel.h"
#include "runtime/train/trainer_fixture.h"
#include "runtime/train/whole_state.h"

namespace tutti::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class PipelineRunTest : public TrainerTest {
 protected:
  Recipe PipelineOf(int stages, const std::string& output) const {
    Recipe recipe = RecipeFor(output);
    recipe.accumulation = 4;
    recipe.parallel.mesh.pipeline = stages;
    return recipe;
  }
  // The bytes of the finished model.
  std::string TrainOn(int ranks, const Recipe& recipe) {
    const auto outcome = TrainOver(ranks, recipe);
    EXPECT_TRUE(outcome.ok()) << outcome.status();
    return Weights(recipe);
  }
  static std::string ErrorOf(int ranks, const Recipe& recipe, const TrainerContext& context = {}) {
    return TrainOver(ranks, recipe, context).status().ToString();
  }
};

TEST_F(PipelineRunTest, StagesLeaveTheSameBytesAsOneProcess) {
  const std::string one = TrainOn(1, PipelineOf(1, "one"));
  ASSERT_FALSE(one.empty());
  EXPECT_EQ(one, TrainOn(2, PipelineOf(2, "two")));
  Recipe gpipe = PipelineOf(3, "three");
  gpipe.pipeline_schedule = "gpipe";
  gpipe.cut = "layer1.0,layer2.1";
  EXPECT_EQ(one, TrainOn(3, gpipe));
}

TEST_F(PipelineRunTest, WhatIsAveragedClippedAndKeptAsTheBestIsTheSameToo) {
  const auto with_all = [&](int stages, const std::string& output) {
    Recipe recipe = PipelineOf(stages, output);
    recipe.optimizer = "adamw";
    recipe.nesterov = false;
    recipe.lr = 0.001;
    recipe.ema = 0.9;
    recipe.clip_norm = 0.5;
    recipe.keep_best = true;
    recipe.label_smoothing = 0.1;
    recipe.mixup = 0.2;
    recipe.evaluate_mirrored = true;
    return recipe;
  };
  const Recipe one = with_all(1, "one"), two = with_all(2, "two");
  EXPECT_EQ(TrainOn(1, one), TrainOn(2, two));
  const auto best = [](const Recipe& recipe) {
    return base::ReadFile(std::filesystem::path(recipe.output) / "best" / "model.safetensors")
        .value_or(recipe.output);
  };
  EXPECT_EQ(best(one), best(two));
}

TEST_F(PipelineRunTest, ReplicasOfAPipelineLeaveWhatAsManyRanksLeave) {
  EXPECT_EQ(TrainOn(2, PipelineOf(1, "ranks")), TrainOn(4, PipelineOf(2, "pipelines")));
}

TEST_F(PipelineRunTest, TheTorchScriptIsOfTheWholeModelWhereItIsAskedFor) {
  for (const std::optional<bool> asked : {std::optional(true), std::optional<bool>()}) {
    Recipe recipe = PipelineOf(2, asked ? "script" : "none");
    recipe.max_steps = 1;
    recipe.torchscript = asked;
    TrainOn(2, recipe);
    const auto model = std::filesystem::path(recipe.output) / "model";
    EXPECT_EQ(std::filesystem::exists(model / "model.pt"), asked.has_value());
  }
}

// Convolutions without and with depth, attention; none has dropout, whose generator ranks share
// here.
TEST_F(PipelineRunTest, EveryKindOfNetworkLeavesTheSameBytes) {
  const std::pair<std::string, std::string> networks[] = {
      {"resnet20v2", "layer1.1,layer3.0"},
      {"mobilenet_v1", "features.3,features.9"},
      {"vit_ti_4", "encoder.layers.encoder_layer_4,encoder.layers.encoder_layer_8"}};
  for (const auto& [name, cut] : networks) {
    const auto recipe_of = [&, name = name](int stages, const std::string& cut_at) {
      Recipe recipe = PipelineOf(stages, absl::StrCat(name, stages));
      recipe.model = name;
      recipe.input_size = name == "vit_ti_4" ? 0 : 2 * kSide;
      recipe.max_steps = 2;
      recipe.accumulation = 2;
      recipe.cut = cut_at;
      return recipe;
    };
    EXPECT_EQ(TrainOn(1, recipe_of(1, "")), TrainOn(3, recipe_of(3, cut))) << name;
  }
}

TEST_F(PipelineRunTest, ARunThatGoesOnIsCutAsBefore) {
  Recipe recipe = PipelineOf(2, "cut");
  recipe.cut = "layer1.1";  // which no measurement would choose
  recipe.checkpoint_every_steps = 1;
  recipe.max_steps = 1;
  TrainOn(2, recipe);
  recipe.cut = "";
  recipe.max_steps = 2;
  recipe.resume = "latest";
  TrainOn(2, recipe);
  const auto state = nlohmann::json::parse(*base::ReadFile(
      std::filesystem::path(recipe.output) / "checkpoints" / "step-00000002" / "state.json"));
  EXPECT_EQ(state["cut"], "layer1.1");
}

TEST_F(PipelineRunTest, RanksWithOtherMeshesAreToldAtOnce) {
  parallel::OnEveryRank(4, [&](int rank, std::unique_ptr<comm::Communicator> communicator) {
    const Recipe recipe = PipelineOf(rank == 2 ? 2 : 4, "meshes");
    const auto outcome = Train(recipe, std::move(communicator), {});
    EXPECT_THAT(outcome.status().ToString(), HasSubstr("rank 2 has another recipe than rank 0"));
  });
}

// Stops after a step, and goes on with another number of stages.
TEST_F(PipelineRunTest, ACheckpointOfSomeStagesIsReadByAnyOtherNumberOfThem) {
  const std::string whole = TrainOn(1, PipelineOf(1, "whole"));
  Recipe recipe = PipelineOf(2, "parts");
  recipe.optimizer = "sgd";
  recipe.resume = "latest";
  for (const int stages : {2, 3, 1, 2}) {
    recipe.parallel.mesh.pipeline = stages;
    TrainerContext stopping;
    stopping.stop_wanted = [] { return true; };
    const auto stopped = TrainOver(stages, recipe, stopping);
    ASSERT_TRUE(stopped.ok()) << stopped.status();
    EXPECT_TRUE(stopped->stopped);
  }
  recipe.parallel.mesh.pipeline = 3;
  EXPECT_EQ(TrainOn(3, recipe), whole);
}

// AdamW's count of updates is on every stage, under one name.
TEST_F(PipelineRunTest, AdamWsCheckpointsAreReadLikewise) {
  const auto adamw = [&](int stages, const std::string& output) {
    Recipe recipe = PipelineOf(stages, output);
    recipe.optimizer = "adamw";
    recipe.nesterov = false;
    recipe.lr = 0.001;
    return recipe;
  };
  const std::string whole = TrainOn(1, adamw(1, "whole"));
  Recipe recipe = adamw(2, "parts");
  recipe.resume = "latest";
  TrainerContext stopping;
  stopping.stop_wanted = [] { return true; };
  ASSERT_TRUE(TrainOver(2, recipe, stopping).ok());
  recipe.parallel.mesh.pipeline = 1;
  EXPECT_EQ(TrainOn(1, recipe), whole);
}

TEST_F(PipelineRunTest, ACheckpointOfAnotherNetworkIsRefusedByItsStages) {
  Recipe recipe = PipelineOf(1, "whole");
  recipe.max_steps = 1;
  recipe.checkpoint_every_steps = 1;
  TrainOn(1, recipe);
  recipe = PipelineOf(2, "whole");
  recipe.model = "resnet32";
  recipe.resume = "latest";
  EXPECT_THAT(ErrorOf(2, recipe), HasSubstr("the checkpoint is of another run"));
}

TEST_F(PipelineRunTest, WhatDoesNotFitMemoryIsSaidBeforeTheFirstStep) {
  TrainerContext context;
  context.free_memory = [] { return int64_t{2} << 20; };  // of both ranks
  const std::string error = ErrorOf(2, PipelineOf(2, "small"), context);
  EXPECT_THAT(error, AllOf(HasSubstr("RESOURCE_EXHAUSTED"), HasSubstr("stage "),
                           HasSubstr("its rank may take "),
                           HasSubstr("--no-check-memory tries all the same")));
  Recipe unchecked = PipelineOf(2, "unchecked");
  unchecked.check_memory = false;
  unchecked.max_steps = 1;
  EXPECT_EQ(ErrorOf(2, unchecked, context), "OK");
  EXPECT_TRUE(std::filesystem::is_empty(outputs_.path()) ||
              !std::filesystem::exists(outputs_.path() / "small" / "metrics.jsonl"));
}

TEST_F(PipelineRunTest, WrongInputIsAClearError) {
  const auto error_of = [&](int ranks, const std::function<void(Recipe&)>& change) {
    Recipe recipe = PipelineOf(2, "wrong");
    change(recipe);
    return ErrorOf(ranks, recipe);
  };
  EXPECT_THAT(error_of(3, [](Recipe& r) { r.parallel.mesh.data = 2; }),
              HasSubstr("2 stages x 2 replicas do not fit 3 ranks: start 4 ranks"));
  EXPECT_THAT(error_of(12, [](Recipe& r) { r.parallel.mesh.pipeline = 12; }),
              HasSubstr("resnet20 has 11 layers and cannot be cut into 12 stages"));
  EXPECT_THAT(error_of(2, [](Recipe& r) { r.cut = "layer9.0"; }), HasSubstr("layer9.0"));
  EXPECT_THAT(error_of(2,
                       [](Recipe& r) {
                         r.model = "inception_v3";
                         r.input_size = 0;
                       }),
              HasSubstr("inception_v3 has no layers that it could be cut between"));
  EXPECT_THAT(error_of(2, [](Recipe& r) { r.sync_bn = true; }),
              HasSubstr("--sync-bn does not go with --parallel pipeline=2: leave one of them"));
  EXPECT_THAT(error_of(2, [](Recipe& r) { r.compression = "bf16"; }),
              HasSubstr("--compression does not go with --parallel pipeline=2"));
  EXPECT_THAT(error_of(1,
                       [](Recipe& r) {
                         r.parallel = {};
                         r.cut = "fc";
                       }),
              HasSubstr("--cut is for --parallel pipeline=STAGES"));
}

TEST_F(PipelineRunTest, TheTraceHasThePassesOfMicroBatches) {
  Recipe recipe = PipelineOf(2, "traced");
  recipe.trace = outputs_.path() / "trace.json";
  recipe.max_steps = 1;
  TrainOn(2, recipe);
  const auto trace = nlohmann::json::parse(*base::ReadFile(recipe.trace));
  int forward = 0, backward = 0;
  for (const auto& event : trace["traceEvents"]) {
    const std::string name = event["name"];
    forward += name.starts_with("forward ") ? 1 : 0;
    backward += name.starts_with("backward ") ? 1 : 0;
  }
  EXPECT_EQ(forward, 2 * 4);
  EXPECT_EQ(backward, 2 * 4);
}

// A disk that is full after the first tensor keeps no rank waiting.
TEST(WholeState, WhatIsNotWrittenIsTakenAllTheSame) {
  parallel::OnEveryRank(3, [&](int rank, std::unique_ptr<comm::Communicator> group) {
    const auto soon = base::Deadline::After(base::Patient(absl::Seconds(60)));
    models::Model whole = *models::MakeModel({"resnet20", 3}, 1);
    const parallel::Layout layout = *parallel::LayOut({.pipeline = 3}, rank, 3);
    auto strategy = *parallel::PipelineParallel::Create(std::move(whole), std::move(group),
                                                        {.layout = layout, .cut = {0, 4, 8}}, soon);
    const parallel::State own = strategy->state();
    const auto names = parallel::ByName(own);
    const auto catalogue = CatalogueOf(*strategy, own, absl::Minutes(1));
    ASSERT_TRUE(catalogue.ok()) << catalogue.status();
    if (rank == 0) {
      EXPECT_GT(catalogue->model.size(), own.size());
    }
    for (int time = 0; time < 2; ++time) {
      const auto written =
          WriteWhole(*strategy, own, absl::Minutes(1), [&](const WholeSources& sources) {
            EXPECT_EQ(sources.model.size(), catalogue->model.size());
            for (const std::string& name : checkpoint::FileOrder(sources.model)) {
              EXPECT_TRUE(sources.model.at(name).get().ok()) << name;
              if (!names.contains(name)) break;
            }
            return absl::ResourceExhaustedError("the disk is full");
          });
      EXPECT_EQ(absl::IsResourceExhausted(written), rank == 0) << written;
    }
    EXPECT_EQ(strategy->Broadcast(torch::zeros({1}), soon), absl::OkStatus());
  });
}

}  // namespace
}  // namespace tutti::train
