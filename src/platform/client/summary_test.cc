#include "platform/client/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::client {
namespace {

using testing::ElementsAre;

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
  EXPECT_THAT(Summary(Ended("Completed", ""), result),
              ElementsAre("Completed in 1:02, result: top-1 50.00 % on 1,000 images",
                          "Outputs and logs: tutti job download brave_ant"));
  EXPECT_THAT(Summary(Ended("Completed", ""), std::nullopt).front(), "Completed in 1:02");
}

TEST(Summary, OfAFailedJobSaysWhyAndMarksConsequences) {
  JobView job = Ended("Failed", "rank 1 on n2: killed by signal 9 (SIGKILL)");
  job.failures = {{1, "n2", "killed by signal 9 (SIGKILL)", false},
                  {0, "n1", "exit code 1", true},
                  {-1, "n2", "disk full", false}};
  EXPECT_THAT(Summary(job, std::nullopt),
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
  EXPECT_THAT(Summary(job, std::nullopt), ElementsAre("Failed after 1:02: step b failed",
                                                      "Logs: tutti job download brave_ant-b-c"));
  job.children.clear();
  EXPECT_THAT(Summary(job, std::nullopt).back(),
              "Logs: of its steps, which tutti job show brave_ant names");
}

TEST(Summary, OfASweepSaysWhereTheTrialsAre) {
  JobView job = Ended("Completed", "");
  job.type = "sweep";
  EXPECT_THAT(Summary(job, std::nullopt),
              ElementsAre("Completed in 1:02", "Outputs: tutti job download brave_ant",
                          "Logs: of its trials, which tutti job show brave_ant names"));
}

TEST(Summary, OfAJobThatNeverRanIsOneLine) {
  JobView job = Ended("Canceled", "by the user");
  job.started = "";
  EXPECT_THAT(Summary(job, std::nullopt), ElementsAre("Canceled: by the user"));
}

}  // namespace
}  // namespace tutti::client
