// Covers: timeline.cc, gather_measurements.cc, report/run_report.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "base/file.h"
#include "runtime/train/trainer.h"
#include "runtime/train/trainer_fixture.h"

namespace tutti::train {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

TEST_F(TrainerTest, MetricsTellTheRunAndTheStepsPartsAddUp) {
  Recipe recipe = RecipeFor("metrics");
  TrainerContext context;
  context.metrics_file = outputs_.path() / "job-metrics.jsonl";
  const auto outcome = TrainOver(2, recipe, context);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  const fs::path own = fs::path(recipe.output) / "metrics.jsonl";
  EXPECT_EQ(*base::ReadFile(own), *base::ReadFile(context.metrics_file));

  const auto start = Events(own, "start");
  ASSERT_EQ(start.size(), 1u);
  EXPECT_EQ(start[0]["world_size"], 2);
  EXPECT_EQ(start[0]["steps"], 2 * kStepsPerEpoch);
  EXPECT_EQ(start[0]["recipe"]["epochs"], "2");
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
  TrainerContext context;
  context.step_done = [](int64_t) { ADD_FAILURE() << "trained"; };
  const absl::Status status = TrainOver(1, recipe, context).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("data/classes.txt"));
}

}  // namespace
}  // namespace tutti::train
