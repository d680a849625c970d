// Covers: recipe_yaml.cc.
#include "runtime/train/recipe/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "runtime/parallel/pipeline/timetable.h"
#include "runtime/train/optimizer/optimizers.h"

namespace tutti::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The error of reading this text as recipe.yml, without the folder; "" if there is none.
std::string ErrorOf(const std::string& text, Recipe* recipe = nullptr) {
  const base::TemporaryDirectory folder;
  const auto path = folder.path() / "recipe.yml";
  EXPECT_TRUE(base::WriteFileAtomic(path, text).ok());
  Recipe unused;
  const auto status = ReadRecipe(path, recipe == nullptr ? unused : *recipe);
  if (status.ok()) return "";
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  const std::string message(status.message());
  EXPECT_EQ(message.find(path.string()), 0u) << message;
  return message.substr(folder.path().string().size() + 1);
}

TEST(Recipe, ReadsEveryKindOfValue) {
  Recipe recipe;
  EXPECT_EQ(ErrorOf("# comment\nmodel: resnet56\nepochs: 12\nlr: 5e-2\nsync-bn: true\n"
                    "schedule: step\nmilestones: [3, 6.5]\n",
                    &recipe),
            "");
  EXPECT_EQ(recipe.model, "resnet56");
  EXPECT_EQ(recipe.epochs, 12);
  EXPECT_DOUBLE_EQ(recipe.lr, 0.05);
  EXPECT_TRUE(recipe.sync_bn);
  EXPECT_THAT(recipe.milestones, ElementsAre(3, 6.5));
  EXPECT_EQ(recipe.batch, Recipe().batch) << "what the file does not name stays";
}

TEST(Recipe, WhatIsLeftToTheMachineCanBeSaid) {
  Recipe recipe;
  EXPECT_EQ(recipe.precision, "auto");
  EXPECT_EQ(recipe.winograd, std::nullopt);
  EXPECT_EQ(ErrorOf("winograd: no\nprecision: fp32\n", &recipe), "");
  EXPECT_EQ(recipe.winograd, false);
  EXPECT_EQ(recipe.precision, "fp32");
  EXPECT_EQ(ErrorOf("winograd: true\n", &recipe), "");
  EXPECT_EQ(recipe.winograd, true);
  EXPECT_EQ(ErrorOf("winograd: auto\nprecision: auto\n", &recipe), "");
  EXPECT_EQ(recipe.winograd, std::nullopt);
  EXPECT_EQ(ErrorOf("winograd: some\n"),
            "recipe.yml:1: winograd: \"some\" is none of auto, true and false");
}

TEST(Recipe, AnEmptyFileChangesNothing) { EXPECT_EQ(ErrorOf("# nothing\n"), ""); }

TEST(Recipe, AnUnknownKeyIsNamedWithItsLineAndTheNearestKey) {
  EXPECT_EQ(ErrorOf("model: resnet20\nepoch: 3\n"),
            "recipe.yml:2: unknown key \"epoch\" (did you mean \"epochs\"?)");
  EXPECT_EQ(ErrorOf("zzzzzzzz: 3\n"), "recipe.yml:1: unknown key \"zzzzzzzz\"");
}

TEST(Recipe, AWrongValueIsNamedWithItsLine) {
  EXPECT_EQ(ErrorOf("\n\nlr: fast\n"), "recipe.yml:3: lr: \"fast\" is not a number");
  EXPECT_EQ(ErrorOf("epochs: 1.5\n"), "recipe.yml:1: epochs: \"1.5\" is not a whole number");
  EXPECT_EQ(ErrorOf("epochs: 0\n"), "recipe.yml:1: epochs: 0 is below 1");
  EXPECT_EQ(ErrorOf("nesterov: maybe\n"),
            "recipe.yml:1: nesterov: \"maybe\" is neither true nor false");
  EXPECT_EQ(ErrorOf("schedule: cosin\n"),
            "recipe.yml:1: schedule: \"cosin\" is not one of cosine, step, constant (did you mean "
            "\"cosine\"?)");
  EXPECT_EQ(ErrorOf("mean: {a: 1}\n"), "recipe.yml:1: mean has no value");
  EXPECT_EQ(ErrorOf("lr: nan\n"), "recipe.yml:1: lr: \"nan\" is not a number");
  EXPECT_EQ(ErrorOf("optimizer: lambs\n"),
            absl::StrCat("recipe.yml:1: optimizer: \"lambs\" is not one of ",
                         absl::StrJoin(OptimizerNames(), ", "), " (did you mean \"lamb\"?)"));
  EXPECT_EQ(ErrorOf("optimizer: lars\ntrust: some\n"),
            "recipe.yml:2: trust: \"some\" is not a number");
  EXPECT_EQ(ErrorOf("trust: -0.001\n"), "recipe.yml:1: trust: -0.001 is below 0");
}

TEST(Recipe, TheHelpOfSchedulesLivesAsLongAsTheProgram) {
  Recipe recipe;
  for (const Field& field : FieldsOf(recipe)) {
    if (field.name != "pipeline-schedule") continue;
    EXPECT_THAT(std::string(field.help), testing::StartsWith("of a pipeline's micro-batches; "));
    for (const auto& schedule : parallel::Schedules()) {
      EXPECT_THAT(std::string(field.help), testing::HasSubstr(std::string(schedule.about)));
    }
  }
}

TEST(Recipe, TheHelpOfACoefficientNamesTheOptimizersThatTakeIt) {
  Recipe recipe;
  std::map<absl::string_view, std::string> help;
  for (const Field& field : FieldsOf(recipe)) help[field.name] = std::string(field.help);
  EXPECT_THAT(help.at("momentum"), testing::StartsWith("of sgd"));
  EXPECT_THAT(help.at("weight-decay"), testing::ContainsRegex("adamw.* decoupled"));
  EXPECT_THAT(help.at("decay"), testing::ContainsRegex("lars.*: always weights alone"));
  // That of "decay" names those that do not take it.
  for (const OptimizerEntry& optimizer : Optimizers()) {
    for (const absl::string_view coefficient : optimizer.coefficients) {
      const bool is_named = absl::StrContains(help.at(coefficient), optimizer.name);
      EXPECT_EQ(is_named, coefficient != "decay") << coefficient << " of " << optimizer.name;
    }
  }
}

TEST(Recipe, TheHelpOfPipelineScheduleSaysWhatEachDoes) {
  Recipe recipe;
  std::map<absl::string_view, std::string> help;
  for (const Field& field : FieldsOf(recipe)) help[field.name] = std::string(field.help);
  for (const parallel::ScheduleEntry& schedule : parallel::Schedules()) {
    EXPECT_THAT(help.at("pipeline-schedule"),
                HasSubstr(absl::StrCat(schedule.name, ": ", schedule.about)));
  }
}

TEST(Recipe, NamesOptimizersAsInASentence) {
  const auto are = [](std::vector<absl::string_view> names) {
    return NamesWhere([names](const OptimizerEntry& each) {
      return std::find(names.begin(), names.end(), each.name) != names.end();
    });
  };
  EXPECT_EQ(are({}), "");
  EXPECT_EQ(are({"lars"}), "lars");
  EXPECT_EQ(are({"sgd", "lars"}), "sgd and lars");
  EXPECT_EQ(are({"sgd", "adamw", "lars"}), "sgd, adamw and lars");
}

TEST(Recipe, AKeySetTwiceIsAnError) {
  EXPECT_EQ(ErrorOf("lr: 1\nlr: 2\n"), "recipe.yml:2: \"lr\" is set twice");
}

TEST(Recipe, BadYamlIsNamedWithItsLine) {
  EXPECT_THAT(ErrorOf("model: resnet20\nlr: [1, 2\n"), HasSubstr("recipe.yml:"));
  EXPECT_THAT(ErrorOf("- a\n- b\n"), HasSubstr("recipe.yml:1: a recipe is a mapping"));
}

TEST(Recipe, EveryFieldTakesItsOwnText) {
  Recipe recipe;
  recipe.milestones = {1, 2.5};
  for (const Field& field : FieldsOf(recipe)) {
    EXPECT_TRUE(SetField(field, FieldText(field)).ok()) << field.name;
  }
  EXPECT_THAT(recipe.milestones, ElementsAre(1, 2.5));
}

TEST(Recipe, ValidationSaysWhatDoesNotFit) {
  Recipe recipe;
  EXPECT_THAT(std::string(Validate(recipe).message()), HasSubstr("--data is missing"));
  recipe.data = "x";
  EXPECT_TRUE(Validate(recipe).ok());
  recipe.schedule = "step";
  EXPECT_THAT(std::string(Validate(recipe).message()), HasSubstr("--milestones"));
  recipe.milestones = {60, 30};
  EXPECT_THAT(std::string(Validate(recipe).message()), HasSubstr("ascend"));
  recipe.milestones = {30, 60};
  recipe.scale_lr = recipe.lr_per_rank = true;
  EXPECT_THAT(std::string(Validate(recipe).message()), HasSubstr("two ways"));
  recipe.scale_lr = false;
  recipe.augment = "none";
  recipe.alternate_flip = true;
  EXPECT_THAT(std::string(Validate(recipe).message()), HasSubstr("--alternate-flip"));
  recipe.augment = "flip";
  EXPECT_TRUE(Validate(recipe).ok());
  recipe.erase = 1.1;
  EXPECT_THAT(std::string(Validate(recipe).message()), HasSubstr("--erase"));
  recipe.erase = 0;
  recipe.plain_epochs = 2;
  EXPECT_THAT(std::string(Validate(recipe).message()), HasSubstr("--plain-epochs is for --erase"));
  recipe.erase = 1;
  EXPECT_TRUE(Validate(recipe).ok());
  recipe.plain_epochs = recipe.epochs;
  EXPECT_TRUE(Validate(recipe).ok());
  ++recipe.plain_epochs;
  EXPECT_THAT(std::string(Validate(recipe).message()), HasSubstr("is more than --epochs 90"));
  recipe.plain_epochs = 0;
  recipe.optimizer = "adamw";
  recipe.nesterov = true;
  EXPECT_THAT(std::string(Validate(recipe).message()), HasSubstr("--nesterov is for"));
  recipe.nesterov = false;
  recipe.betas = {0.9};
  EXPECT_THAT(std::string(Validate(recipe).message()), HasSubstr("--betas"));
  recipe.betas = {0.9, 0.95};
  EXPECT_TRUE(Validate(recipe).ok());
  recipe.optimizer = "lars";
  recipe.trust = 0;
  EXPECT_THAT(std::string(Validate(recipe).message()), HasSubstr("--trust must be above 0"));
  recipe.trust = 0.01;
  EXPECT_TRUE(Validate(recipe).ok());
  recipe.nesterov = true;
  EXPECT_THAT(std::string(Validate(recipe).message()), HasSubstr("--nesterov is for"));
  recipe.nesterov = false;
  recipe.ema = 1;
  EXPECT_THAT(std::string(Validate(recipe).message()), HasSubstr("--ema"));
}

TEST(Recipe, WhatIsMeantPerRankIsMultipliedOnce) {
  Recipe recipe;
  recipe.lr = 0.0125;
  recipe.lr_per_rank = true;
  recipe.batch_per_rank = 64;
  const Recipe for_eight = ForRanks(recipe, 8);
  EXPECT_EQ(for_eight.batch, 512);
  EXPECT_DOUBLE_EQ(for_eight.lr, 0.1);
  const Recipe again = ForRanks(for_eight, 8);
  EXPECT_EQ(again.batch, 512);
  EXPECT_DOUBLE_EQ(again.lr, 0.1);
  EXPECT_EQ(ForRanks(Recipe(), 8).batch, Recipe().batch);
}

}  // namespace
}  // namespace tutti::train
