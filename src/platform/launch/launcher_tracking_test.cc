// A job's run in the service's MLflow tracking, on a node.
// Covers: hooks/mlflow_hook.cc, hooks/secrets_hook.cc, delivery/launcher_calls.cc.
#include "http/identity.h"
#include "platform/code/code_archive_for_tests.h"
#include "platform/launch/delivery/launcher_calls.h"
#include "platform/launch/launcher_fixture.h"
#include "platform/launch/staging/secret_folder.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;
using code::TestArchive;
using code::TestEntry;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kToken[] = "beef.0123456789abcdef0123456789abcdef";

class LauncherTracking : public LauncherFixture {
 protected:
  spec::LaunchPlan Tracked(const std::string& command) const {
    spec::LaunchPlan plan = Plan(command);
    plan.tracks = true;
    return plan;
  }
};

TEST_F(LauncherTracking, ProcessesFindTheRunAndItsTokenIsMasked) {
  service.SetRun("beef", kToken);
  const spec::LaunchPlan plan = Tracked(
      "echo $MLFLOW_RUN_ID $MLFLOW_EXPERIMENT_NAME ${#MLFLOW_TRACKING_TOKEN}; "
      "echo $MLFLOW_TRACKING_TOKEN; echo $MLFLOW_TRACKING_URI");
  EXPECT_TRUE(Run(plan).ok());
  EXPECT_THAT(service.Output(0, "stdout"), HasSubstr("beef nets 37\n***\nhttp://127.0.0.1:"));
  EXPECT_FALSE(IsAnywhere(kToken));
  EXPECT_FALSE(fs::exists(SecretFolder::PathOf(plan)));
  EXPECT_FALSE(service.Events("prepared").at(0).contains("note"));
}

TEST_F(LauncherTracking, TheTokenIsMaskedInMetrics) {
  service.SetRun("beef", kToken);
  EXPECT_TRUE(Run(Tracked("echo \"$MLFLOW_TRACKING_TOKEN\" >>\"$TUTTI_METRICS_FILE\"")).ok());
  EXPECT_EQ(service.Output(0, "metrics"), std::string(sizeof kToken - 1, '*') + "\n");
}

TEST_F(LauncherTracking, AScriptThatChoosesItsExperimentIsNamedNoRun) {
  service.SetRun("beef", kToken);
  spec::LaunchPlan plan = Tracked("env | grep -c ^MLFLOW_RUN_; true");  // which speaks of no id
  const TestArchive code(
      std::vector<TestEntry>(1, {"train.py", "mlflow.set_experiment(\"mine\")\n"}));
  service.SetSnapshot(code.bytes());
  plan.snapshot = code.hash();
  EXPECT_TRUE(Run(plan).ok());
  EXPECT_EQ(service.Output(0, "stdout"), "0\n");
}

TEST_F(LauncherTracking, TheCertificateThatTheServiceMadeIsAFile) {
  service.SetRun("beef", kToken);
  const auto identity =
      http::Identity::FromPem(http::Identity::MakeSelfSigned({"127.0.0.1"}).value());
  ASSERT_TRUE(identity.ok()) << identity.status();
  service.Stop();
  service.Start(*identity);
  EXPECT_TRUE(
      Run(Tracked("cat $MLFLOW_TRACKING_SERVER_CERT_PATH; echo $MLFLOW_TRACKING_URI")).ok());
  EXPECT_THAT(service.Output(0, "stdout"), HasSubstr((*identity)->certificate()));
  EXPECT_THAT(service.Output(0, "stdout"), HasSubstr("https://127.0.0.1:"));
}

TEST_F(LauncherTracking, AServiceThatCannotMakeItHasTheJobLogToFiles) {
  EXPECT_TRUE(Run(Tracked("echo $MLFLOW_TRACKING_URI; echo [$MLFLOW_TRACKING_TOKEN]")).ok());
  EXPECT_THAT(service.Output(0, "stdout"), EndsWith("/work/outputs/mlruns\n[]\n"));
  EXPECT_THAT(std::string(service.Events("prepared").at(0)["note"]),
              HasSubstr("what MLflow logs goes to files in the results"));
}

TEST_F(LauncherTracking, WhatAUserNamesWins) {
  service.SetRun("beef", kToken);
  spec::LaunchPlan plan =
      Tracked("echo $MLFLOW_TRACKING_URI [$MLFLOW_RUN_ID] $MLFLOW_TRACKING_TOKEN");
  plan.environment_variables = {{"MLFLOW_TRACKING_URI", "http://mine"},
                                {"MLFLOW_TRACKING_TOKEN", "own"}};
  EXPECT_TRUE(Run(plan).ok());
  EXPECT_EQ(service.Output(0, "stdout"), "http://mine [] own\n");
}

TEST_F(LauncherTracking, ATokenOfTheUsersStaysBesideOurAddress) {
  service.SetRun("beef", kToken);
  spec::LaunchPlan plan = Tracked("echo $MLFLOW_RUN_ID $MLFLOW_TRACKING_TOKEN");
  plan.environment_variables = {{"MLFLOW_TRACKING_TOKEN", "own"}};
  EXPECT_TRUE(Run(plan).ok());
  EXPECT_EQ(service.Output(0, "stdout"), "beef own\n");
}

TEST_F(LauncherTracking, AServiceThatRefusesForADiskThatIsFullHasTheJobLogToFiles) {
  service.RefuseRun(409);
  EXPECT_TRUE(Run(Tracked("echo $MLFLOW_TRACKING_URI")).ok());
  EXPECT_THAT(service.Output(0, "stdout"), EndsWith("/work/outputs/mlruns\n"));
}

TEST_F(LauncherTracking, ACommandThatChoosesItsExperimentIsNamedNoRun) {
  service.SetRun("beef", kToken);
  EXPECT_TRUE(Run(Tracked("echo [$(env | grep ^MLFLOW_RUN)]  # mlflow.set_experiment('x')")).ok());
  EXPECT_EQ(service.Output(0, "stdout"), "[]\n");
}

TEST_F(LauncherTracking, AScriptThatChoosesItsServerIsGivenNothingOfOurs) {
  service.SetRun("beef", kToken);
  spec::LaunchPlan plan = Tracked("env | grep -E '^MLFLOW_.*(TOKEN|CERT|URI|RUN_)'");
  const TestArchive code(std::vector<TestEntry>(
      1, {"train.py", "mlflow.set_tracking_uri(\"https://other.example\")\n"}));
  service.SetSnapshot(code.bytes());
  plan.snapshot = code.hash();
  EXPECT_TRUE(Run(plan).ok());
  EXPECT_THAT(service.Output(0, "stdout"), EndsWith("/work/outputs/mlruns\n"));
  EXPECT_THAT(service.Output(0, "stdout"), Not(HasSubstr("TOKEN")));
}

TEST_F(LauncherTracking, AScriptThatTakesTheServerFromItsEnvironmentIsGivenOurs) {
  service.SetRun("beef", kToken);
  spec::LaunchPlan plan = Tracked("echo $MLFLOW_TRACKING_URI");
  const TestArchive code(std::vector<TestEntry>(
      1, {"train.py", "mlflow.set_tracking_uri(os.environ[\"MLFLOW_TRACKING_URI\"])\n"}));
  service.SetSnapshot(code.bytes());
  plan.snapshot = code.hash();
  EXPECT_TRUE(Run(plan).ok());
  EXPECT_THAT(service.Output(0, "stdout"), HasSubstr("http://127.0.0.1:"));
}

TEST_F(LauncherTracking, AUserWhomMlflowWouldNameKeepsTheJobFromTheService) {
  service.SetRun("beef", kToken);
  spec::LaunchPlan plan = Tracked("echo $MLFLOW_TRACKING_URI [$MLFLOW_TRACKING_TOKEN]");
  plan.environment_variables = {{"MLFLOW_TRACKING_USERNAME", "me"}};
  EXPECT_TRUE(Run(plan).ok());
  EXPECT_THAT(service.Output(0, "stdout"), EndsWith("/work/outputs/mlruns []\n"));
}

TEST_F(LauncherTracking, AServiceThatStaysAwayIsWaitedForNoLongerThanAsked) {
  for (const int status : {500, 503}) {
    service.RefuseRun(status);
    const spec::LaunchPlan plan = Tracked("true");
    ServiceLink link(plan);
    const auto run = PostRun(link, 0, base::Deadline::After(absl::Milliseconds(50)));
    EXPECT_TRUE(absl::IsDeadlineExceeded(run.status())) << run.status();
  }
}

}  // namespace
}  // namespace tutti::launch
