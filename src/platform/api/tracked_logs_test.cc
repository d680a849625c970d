#include "platform/api/tracked_logs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::api {
namespace {

TEST(AddTracked, AddsWhatTheJobsRunHasWhereTheJobLoggedNothingToFiles) {
  tracking::Run run;
  run.info.id = "beef";
  run.metrics = {{.key = "loss", .point = {.step = 3, .value = 0.5}}, {.key = "system/cpu"}};
  run.params = {{"net", "resnet\nmore"}};
  mlflow::Logged logged;
  AddTracked(run, logged);
  ASSERT_EQ(logged.metrics.size(), 1u) << "what MLflow measures by itself is none";
  EXPECT_EQ(logged.metrics[0].name, "loss");
  EXPECT_EQ(logged.metrics[0].value, 0.5);
  EXPECT_EQ(logged.metrics[0].step, 3);
  ASSERT_EQ(logged.params.size(), 1u);
  EXPECT_EQ(logged.params[0].value, "resnet");
  ASSERT_EQ(logged.runs.size(), 1u);
  EXPECT_EQ(logged.runs[0].id, "beef");
}

TEST(AddTracked, FilesOfTheJobGoBefore) {
  tracking::Run run;
  run.metrics = {{.key = "loss"}};
  mlflow::Logged logged;
  logged.params = {{"net", "vgg"}};
  AddTracked(run, logged);
  EXPECT_TRUE(logged.metrics.empty());
}

TEST(AddReported, AddsWhatMlflowWasNotTold) {
  mlflow::Logged logged;
  logged.metrics = {{"loss", 0.5, 3}};
  AddReported({{"accuracy", 0.25, 1}, {"loss", 9, 9}}, logged);
  ASSERT_EQ(logged.metrics.size(), 2u);
  EXPECT_EQ(logged.metrics[0].name, "accuracy");
  EXPECT_EQ(logged.metrics[1].value, 0.5);
}

}  // namespace
}  // namespace tutti::api
