// Secrets on a node: where their values are, and where they are not.
// Covers: hooks/secrets_hook.cc, delivery/secret_masks.cc, node/event_log.cc,
// delivery/launcher_calls.cc.
#include "platform/launch/launcher_fixture.h"
#include "platform/launch/staging/secret_folder.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kValue[] = "hunter22-of-the-hub";

class LauncherSecrets : public LauncherFixture {
 protected:
  LauncherSecrets() {
    service.SetSecrets({{"hub", kValue}, {"deploy", "-----BEGIN-----\nMIIEvQIBADANBg\n"}});
  }
  spec::LaunchPlan PlanWith(const std::string& command) const {
    spec::LaunchPlan plan = Plan(command);
    plan.secret_variables = {{"TOKEN", "hub"}};
    plan.secret_files = {{"KEY", "deploy"}};
    return plan;
  }
};

TEST_F(LauncherSecrets, AreVariablesAndFilesAndAreMaskedInWhatIsPrinted) {
  const spec::LaunchPlan plan = PlanWith(
      "echo \"it is $TOKEN, ${#TOKEN} long\"; cat \"$KEY\"; stat -c '%a %s' \"$KEY\"; "
      "echo \"$KEY\"; printf hunter22- ; sleep 0.05; echo of-the-hub; echo \"$TOKEN\" | base64 "
      ">&2");
  EXPECT_TRUE(Run(plan).ok());
  EXPECT_EQ(service.Output(0, "stdout"),
            absl::StrCat("it is ***, 19 long\n***\n400 31\n", SecretFolder::PathOf(plan).native(),
                         "/KEY\n***\n"));
  EXPECT_THAT(service.Output(0, "stderr"), HasSubstr("***"));
  EXPECT_FALSE(fs::exists(SecretFolder::PathOf(plan)));
  EXPECT_FALSE(IsAnywhere(kValue));
  EXPECT_FALSE(IsAnywhere("MIIEvQIBADANBg"));
  EXPECT_EQ(service.Events("prepared").at(0)["note"],
            "given secrets: hub as TOKEN, deploy as the file KEY");
}

TEST_F(LauncherSecrets, AreMaskedInReasonsAndInMetrics) {
  const spec::LaunchPlan plan = PlanWith(
      "printf '{\"name\": \"%s\"}\\n' \"$TOKEN\" >>\"$TUTTI_METRICS_FILE\"; "
      "echo \"Traceback (most recent call last):\" >&2; "
      "echo \"  File \\\"a.py\\\", line 1, in <module>\" >&2; "
      "echo \"ValueError: bad token $TOKEN\" >&2; exit 3");
  EXPECT_TRUE(Run(plan).ok());
  EXPECT_THAT(std::string(service.Events("exited").at(0)["last_error"]),
              HasSubstr("bad token ***"));
  EXPECT_EQ(service.Output(0, "metrics"),
            absl::StrCat("{\"name\": \"", std::string(sizeof kValue - 1, '*'), "\"}\n"));
  for (const auto& event : service.Events()) {
    EXPECT_THAT(event.dump(), Not(HasSubstr(kValue)));
  }
}

TEST_F(LauncherSecrets, WhatOpensStoresIsNotWithinReachOfTheProcesses) {
  const spec::LaunchPlan plan = PlanWith("ls -A \"$(dirname \"$KEY\")/.given\"");
  service.SetSecrets(
      {{"hub", kValue}, {"deploy", "key of deploy"}, {"datastore.sets", "key of the store"}});
  EXPECT_TRUE(Run(plan).ok());
  EXPECT_EQ(service.Output(0, "stdout"), "deploy\nhub\n");
}

TEST_F(LauncherSecrets, OneThatTheServiceDoesNotHaveFailsTheJobWithItsReason) {
  spec::LaunchPlan plan = PlanWith("echo began");
  service.SetSecrets({{"hub", kValue}});
  Run(plan);
  EXPECT_EQ(service.Output(0, "stdout"), "");
  EXPECT_EQ(service.Events("finished").at(0)["reason"],
            "secrets: the service has not sent secret \"deploy\"");
  EXPECT_FALSE(fs::exists(SecretFolder::PathOf(plan)));
}

TEST_F(LauncherSecrets, ALauncherThatWasKilledLeavesNoneOnceAnotherHasCome) {
  const spec::LaunchPlan plan = PlanWith(
      "printf '%s\\n' \"$TOKEN\" >>\"$TUTTI_METRICS_FILE\"; cat \"$KEY\"; echo ready; sleep 600");
  service.RefuseOutput(true);  // so that there is something left to send
  base::ChildProcess first = Launch(plan);
  const fs::path out = NodeFolders(plan.directory).stream(0, "stdout");
  ASSERT_TRUE(service.Await([&] {
    const auto text = base::ReadFile(out);
    return text.ok() && text->find("ready") != std::string::npos;
  }));
  EXPECT_TRUE(fs::exists(SecretFolder::PathOf(plan) / "KEY"));
  ASSERT_TRUE(first.SignalGroup(SIGKILL).ok());
  WaitFor(first);
  service.RefuseOutput(false);
  Run(plan);
  EXPECT_FALSE(fs::exists(SecretFolder::PathOf(plan)));
  EXPECT_TRUE(NoProcessLeft());
  EXPECT_EQ(service.Output(0, "stdout"), "***\nready\n");
  EXPECT_EQ(service.Output(0, "metrics"), std::string(sizeof kValue - 1, '*') + "\n");
}

TEST_F(LauncherSecrets, WhoFollowsAndCannotLearnTheValuesSendsNoMetricsInTheClear) {
  const spec::LaunchPlan plan =
      PlanWith("printf '%s\\n' \"$TOKEN\" loss >>\"$TUTTI_METRICS_FILE\"; echo ready; sleep 600");
  service.RefuseOutput(true);
  base::ChildProcess first = Launch(plan);
  const fs::path out = NodeFolders(plan.directory).stream(0, "stdout");
  ASSERT_TRUE(service.Await([&] {
    const auto text = base::ReadFile(out);
    return text.ok() && text->find("ready") != std::string::npos;
  }));
  ASSERT_TRUE(first.SignalGroup(SIGKILL).ok());
  WaitFor(first);
  ASSERT_TRUE(SecretFolder::Remove(plan).ok());  // as on another machine
  service.RefuseOutput(false);
  Run(plan);
  EXPECT_EQ(service.Output(0, "metrics"), std::string(sizeof kValue - 1, '*') + "\n****\n");
}

TEST_F(LauncherSecrets, WhoFollowsMasksWithTheValuesThatTheProcessesHad) {
  const spec::LaunchPlan plan = PlanWith(
      "printf '%s\\n' \"$TOKEN\" loss >>\"$TUTTI_METRICS_FILE\"; cat \"$KEY\"; echo ready; sleep "
      "600");
  service.RefuseOutput(true);
  base::ChildProcess first = Launch(plan);
  const fs::path out = NodeFolders(plan.directory).stream(0, "stdout");
  ASSERT_TRUE(service.Await([&] {
    const auto text = base::ReadFile(out);
    return text.ok() && text->find("ready") != std::string::npos;
  }));
  ASSERT_TRUE(first.SignalGroup(SIGKILL).ok());
  WaitFor(first);
  service.SetSecrets({{"hub", "a-value-that-is-newer"}, {"deploy", "another one\n"}});
  service.RefuseOutput(false);
  Run(plan);
  EXPECT_EQ(service.Output(0, "metrics"), std::string(sizeof kValue - 1, '*') + "\nloss\n");
  EXPECT_FALSE(fs::exists(SecretFolder::PathOf(plan)));
}

TEST_F(LauncherSecrets, NothingOfAValueIsSentWhereTheMetricsEndWithinOne) {
  const std::string begin(kValue, 5);
  const spec::LaunchPlan plan = PlanWith(
      absl::StrCat("printf 'a %s' ", begin, " >>\"$TUTTI_METRICS_FILE\"; ", "until [ -e ",
                   (folder.path() / "go").native(), " ]; do sleep 0.02; ", "done; printf '%s\\nb ",
                   begin, "' \"${TOKEN#", begin, "}\" >>\"$TUTTI_METRICS_FILE\""));
  base::ChildProcess launcher = Launch(plan);
  ASSERT_TRUE(AwaitOutput("a ", 0, "metrics"));
  EXPECT_EQ(service.Output(0, "metrics"), "a ");
  ASSERT_TRUE(base::WriteFileAtomic(folder.path() / "go", "").ok());
  EXPECT_TRUE(WaitFor(launcher).ok());
  EXPECT_EQ(service.Output(0, "metrics"),
            absl::StrCat("a ", std::string(sizeof kValue - 1, '*'), "\nb *****"));
}

}  // namespace
}  // namespace tutti::launch
