#include "platform/client/jobs/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::client {
namespace {

using testing::ElementsAre;

constexpr KeptFiles kAll = {true, true, true, true, true};

JobView Ended(const std::string& state, const std::string& reason) {
  JobView job;
  job.id = "brave_ant";
  job.state = state;
  job.reason = reason;
  job.started = "2026-01-01T00:00:00Z";
  job.ended = "2026-01-01T00:01:02Z";
  return job;
}

TEST(Summary, OfACompletedJobSaysHowGoodItIsAndWhereItLies) {
  const auto result = ParseMetric(R"({"event": "result", "top1": 0.5, "images": 1000})");
  EXPECT_THAT(Summary(Ended("Completed", ""), result, kAll),
              ElementsAre("Completed in 1:02, result: top-1 50.00 % on 1,000 images",
                          "Outputs and logs: tutti job download brave_ant"));
  EXPECT_THAT(Summary(Ended("Completed", ""), std::nullopt, kAll).front(), "Completed in 1:02");
}

TEST(Summary, OfAFailedJobSaysWhyAndMarksConsequences) {
  JobView job = Ended("Failed", "rank 1 on n2: killed by signal 9 (SIGKILL)");
  job.failures = {{1, "n2", "killed by signal 9 (SIGKILL)", false},
                  {0, "n1", "exit code 1", true},
                  {std::nullopt, "n2", "disk full", false}};
  EXPECT_THAT(Summary(job, std::nullopt, {.logs = true}),
              ElementsAre("Failed after 1:02: rank 1 on n2: killed by signal 9 (SIGKILL)",
                          "  rank 0 on n1: exit code 1 (a consequence)", "  node n2: disk full",
                          "Logs: tutti job download brave_ant"));
}

TEST(Summary, OfAPipelineSendsToTheStepThatFailed) {
  JobView job = Ended("Failed", "step b failed");
  job.type = "pipeline";
  ChildView inner{.step = "c", .id = "brave_ant-b-c", .state = "Failed"};
  job.children = {{.step = "a", .id = "brave_ant-a", .state = "Completed"},
                  {.step = "b", .id = "brave_ant-b", .state = "Failed", .children = {inner}}};
  EXPECT_THAT(
      Summary(job, std::nullopt, {.of_children = true, .of_failed = true}),
      ElementsAre("Failed after 1:02: step b failed", "Logs: tutti job download brave_ant-b-c"));
}

TEST(Summary, OfAPipelineThatFailedOffersWhatItsOtherStepsHaveLeft) {
  JobView job = Ended("Failed", "b failed: exit code 1");
  job.type = "pipeline";
  job.children = {{.step = "a", .id = "brave_ant.a", .state = "Completed"},
                  {.step = "b", .id = "brave_ant.b", .state = "Failed"}};
  EXPECT_THAT(
      Summary(job, std::nullopt, {.of_children = true, .of_failed = true, .of_completed = true}),
      ElementsAre("Failed after 1:02: b failed: exit code 1",
                  "Logs: tutti job download brave_ant.b",
                  "All of its steps: tutti job download brave_ant --all"));
}

TEST(Summary, NamesTheFirstParamsAndMetricsAndHowToSeeTheOthers) {
  EXPECT_EQ(ParamsText({}, Extent::kBrief, "brave_ant"), "");
  EXPECT_EQ(ParamsText({{"rate", "0.1"}, {"a\nb", "x"}}, Extent::kBrief, "brave_ant"),
            "rate 0.1, a?b x");
  EXPECT_EQ(MetricsText({{"loss", 0.25}, {"top1", std::nullopt}}, Extent::kBrief, "brave_ant"),
            "loss 0.25, top1 no finite number");
  const std::vector<LoggedMetricView> ten(10, {"m", 1});
  const std::string eight = "m 1, m 1, m 1, m 1, m 1, m 1, m 1, m 1";
  EXPECT_EQ(MetricsText(ten, Extent::kBrief, "brave_ant"),
            eight + " and 2 more: tutti job show brave_ant --all");
  EXPECT_EQ(MetricsText(ten, Extent::kAll, "brave_ant"), eight + ", m 1, m 1");
}

TEST(Summary, OfASweepOffersItsTrials) {
  JobView job = Ended("Completed", "");
  job.type = "sweep";
  EXPECT_THAT(Summary(job, std::nullopt, {.outputs = true, .of_children = true}),
              ElementsAre("Completed in 1:02", "Outputs: tutti job download brave_ant",
                          "All of its trials: tutti job download brave_ant --all"));
}

TEST(Summary, OffersOnlyWhatBringsSomething) {
  JobView job = Ended("Completed", "");
  EXPECT_THAT(Summary(job, std::nullopt, {}), ElementsAre("Completed in 1:02"));
  EXPECT_THAT(Summary(job, std::nullopt, {.outputs = true}).back(),
              "Outputs: tutti job download brave_ant");
  job.type = "pipeline";
  EXPECT_THAT(Summary(job, std::nullopt, {.of_children = true}).back(),
              "All of its steps: tutti job download brave_ant --all");
  EXPECT_THAT(Summary(job, std::nullopt, {}), ElementsAre("Completed in 1:02"));
}

TEST(Summary, NamesWhatWasNotKeptOfEveryEnd) {
  const std::string note = "; note: not kept: 120 MB in ./checkpoints; write to ./outputs";
  const std::string line = "Note: not kept: 120 MB in ./checkpoints; write to ./outputs";
  EXPECT_THAT(Summary(Ended("Completed", "all ended" + note), std::nullopt, {}),
              ElementsAre("Completed in 1:02", line));
  EXPECT_THAT(Summary(Ended("Canceled", "canceled" + note), std::nullopt, {}),
              ElementsAre("Canceled after 1:02", line));
  EXPECT_THAT(Summary(Ended("Failed", "rank 0 failed" + note), std::nullopt, {}),
              ElementsAre("Failed after 1:02: rank 0 failed", line));
}

TEST(Summary, NamesWhatChildrenDidNotKeepTheFirstFewOfThem) {
  const auto child = [](const char* step, const char* reason) {
    ChildView view;
    view.step = step;
    view.reason = reason;
    return view;
  };
  JobView job = Ended("Completed", "all 2 steps completed");
  job.type = "pipeline";
  job.children = {child("train", "exit code 0; note: not kept: 3 MB in ./a"),
                  child("clean", "exit code 0"), child("tune", "all 5 trials completed")};
  job.children[2].children.assign(5, child("trial-1", "exit code 0; note: not kept: ./b"));
  const std::string trial = "Note: tune.trial-1: not kept: ./b";
  EXPECT_THAT(Summary(job, std::nullopt, {}),
              ElementsAre("Completed in 1:02", "Note: train: not kept: 3 MB in ./a", trial, trial,
                          trial, trial, "Note: and 1 more: tutti job show brave_ant --all"));
  EXPECT_EQ(NotesOf(job, Extent::kAll).size(), 6u);
}

TEST(Summary, TellsWhatWasLogged) {
  JobView job = Ended("Completed", "");
  job.logged.metrics = {{"loss", 0.25}, {"bad", std::nullopt, 17, "nan"}};
  job.logged.models = {{"model", "outputs/mlruns/0/run/artifacts/model"}};
  EXPECT_THAT(Summary(job, std::nullopt, {}),
              ElementsAre("Completed in 1:02", "Metrics: loss 0.25, bad nan at step 17",
                          "Model model: outputs/mlruns/0/run/artifacts/model"));
}

TEST(Summary, NamesTheFirstFewOfManyMetricsAndModels) {
  JobView job = Ended("Completed", "");
  job.logged.metrics.assign(10, {"m", 1});
  EXPECT_EQ(Summary(job, std::nullopt, {}).at(1),
            "Metrics: m 1, m 1, m 1, m 1, m 1, m 1, m 1, m 1 and 2 more: tutti job show brave_ant");
  job.logged.metrics.assign(5, {std::string(60, 'm'), 1});
  EXPECT_EQ(Summary(job, std::nullopt, {}).at(1),
            "Metrics: " + std::string(60, 'm') + " 1 and 4 more: tutti job show brave_ant");
  EXPECT_EQ(LoggedFacts(job, Extent::kAll).at(0).second.size(), 5 * 64 - 2);
  job.logged.models.assign(10, {"a", "outputs/a"});
  EXPECT_EQ(Summary(job, std::nullopt, {}).back(), "Models: and 2 more: tutti job show brave_ant");
  EXPECT_EQ(LoggedFacts(job, Extent::kAll).size(), 11u);
}

TEST(Summary, OfAJobThatNeverRanIsOneLine) {
  JobView job = Ended("Canceled", "by the user");
  job.started = "";
  EXPECT_THAT(Summary(job, std::nullopt, {}), ElementsAre("Canceled: by the user"));
}

}  // namespace
}  // namespace tutti::client
