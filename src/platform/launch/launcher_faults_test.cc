// Covers: delivery/service_link.cc, node/spool.cc, node/event_log.cc, node/spool_patience.h,
// output_forwarder.cc.
#include <sys/stat.h>

#include <cstdlib>

#include "platform/launch/launcher_fixture.h"
#include "platform/launch/process/process_limit.h"

namespace tutti::launch {
namespace {

using ::testing::HasSubstr;

class LauncherFaults : public LauncherFixture {
 protected:
  // Writes numbered lines, with a wait for `gate` in the middle.
  std::string Lines(int count) const {
    return absl::StrCat(
        "i=0; while [ $i -lt ", count, " ]; do echo line $i; i=$((i+1)); if [ $i = ", count / 2,
        " ]; then while [ ! -e ", gate().string(), " ]; do sleep 0.01; done; fi; done");
  }
  static std::string Expected(int count) {
    std::string text;
    for (int i = 0; i < count; ++i) absl::StrAppend(&text, "line ", i, "\n");
    return text;
  }
  std::filesystem::path gate() const { return folder.path() / "gate"; }
  void OpenGate() const { ASSERT_TRUE(base::WriteFileAtomic(gate(), "").ok()); }
};

TEST_F(LauncherFaults, NoByteIsLostOrDoubledWhenAnswersAreLost) {
  service.LoseEvery(2);
  OpenGate();
  EXPECT_TRUE(Run(Plan(Lines(3000))).ok());
  EXPECT_EQ(service.Output(0, "stdout"), Expected(3000));
  EXPECT_EQ(service.Events("started").size(), 1u);
  EXPECT_EQ(service.Events("finished").size(), 1u);
}

TEST_F(LauncherFaults, AJobThatForksWithoutEndFailsInItsOwnForksAndIsCleanedUp) {
  if (!ProcessLimit(Plan(""), 40).holds()) GTEST_SKIP() << "this user may not make cgroups";
  ::setenv(kMostProcessesVariable, "40", 1);
  EXPECT_TRUE(Run(Plan("exec python3 -c \"\nimport os, signal\ncount = 0\ntry:\n"
                       "  while count < 400:\n    if os.fork() == 0: signal.pause()\n"
                       "    count += 1\nexcept OSError as error:\n"
                       "  print(error.strerror, count < 40)\n\""))
                  .ok());
  ::unsetenv(kMostProcessesVariable);
  EXPECT_EQ(service.Output(0, "stdout"), "Resource temporarily unavailable True\n");
  EXPECT_TRUE(NoProcessLeft());
}

TEST_F(LauncherFaults, AJobRunsOnWhileTheServiceIsAwayAndEverythingComesAfter) {
  base::ChildProcess launcher = Launch(Plan(Lines(2000)));
  ASSERT_TRUE(AwaitOutput("line 999\n"));
  service.Stop();
  OpenGate();
  const std::filesystem::path spooled =
      NodeFolders(folder.path() / "allocation").stream(0, "stdout");
  const std::string expected = Expected(2000);
  ASSERT_TRUE(service.Await([&] {
    std::error_code error;
    return std::filesystem::file_size(spooled, error) == expected.size();
  })) << "the job stood still without its service";
  service.Start();  // on another port
  EXPECT_TRUE(WaitFor(launcher).ok());
  EXPECT_EQ(service.Output(0, "stdout"), expected);
  EXPECT_EQ(service.Events("finished").at(0)["ok"], true);
}

TEST_F(LauncherFaults, AServiceThatComesBackByTlsAtItsOldPortIsSpokenToByTls) {
  base::ChildProcess launcher = Launch(Plan(Lines(2000)));
  ASSERT_TRUE(AwaitOutput("line 999\n"));
  service.Stop();
  service.Start(*http::Identity::FromPem(*http::Identity::MakeSelfSigned({"localhost"})));
  OpenGate();
  EXPECT_TRUE(WaitFor(launcher).ok());
  EXPECT_EQ(service.Output(0, "stdout"), Expected(2000));
}

TEST_F(LauncherFaults, APlanOfAnotherStartOfTheMachineIsNotRun) {
  spec::LaunchPlan plan = Plan("touch ran");
  plan.boot_id = "4a1cde0b-0000-4000-8000-000000000000";  // the power was cut since
  EXPECT_TRUE(Run(plan).ok());
  EXPECT_TRUE(service.Events("started").empty());
  EXPECT_EQ(service.Events("lost").size(), 1u);
  EXPECT_EQ(service.Events("finished").at(0)["ok"], false);
}

TEST_F(LauncherFaults, AfterKill9TheSecondLauncherDeliversTheRestAndRunsNothing) {
  const spec::LaunchPlan plan =
      Plan(absl::StrCat("(setsid sleep 600 &) ; echo partial > outputs/result; ", Lines(2000)));
  base::ChildProcess first = Launch(plan);
  ASSERT_TRUE(AwaitOutput("line 999\n"));
  service.Stop();
  ::kill(first.pid(), SIGKILL);
  WaitFor(first);
  service.Start();
  EXPECT_TRUE(Run(plan).ok());
  EXPECT_EQ(service.Output(0, "stdout"), Expected(1000));
  EXPECT_EQ(service.Events("started").size(), 1u);
  ASSERT_EQ(service.Events("lost").size(), 1u);
  EXPECT_EQ(service.Events("lost").front()["explained"], false);
  EXPECT_EQ(service.Events().back()["kind"], "finished");
  EXPECT_EQ(service.Events().back()["ok"], false);
  EXPECT_THAT(service.Events().back()["reason"], HasSubstr("launcher of node n1 died"));
  EXPECT_EQ(service.Files().at("outputs/result"), "partial\n");
  EXPECT_TRUE(NoProcessLeft());
}

TEST_F(LauncherFaults, ALauncherAfterTheRegularEndReportsNothingNew) {
  const spec::LaunchPlan plan = Plan("echo once");
  Run(plan);
  const size_t events = service.Events().size();
  EXPECT_TRUE(Run(plan).ok());
  EXPECT_EQ(service.Events().size(), events);
  EXPECT_EQ(service.Output(0, "stdout"), "once\n");
}

TEST_F(LauncherFaults, ASecondLauncherBesideALiveOneEndsAtOnce) {
  const spec::LaunchPlan plan = Plan(Lines(10));
  base::ChildProcess first = Launch(plan);
  ASSERT_TRUE(service.AwaitEvent("started"));
  EXPECT_EQ(Run(plan).code, 7);
  OpenGate();
  EXPECT_TRUE(WaitFor(first).ok());
  EXPECT_EQ(service.Output(0, "stdout"), Expected(10));
}

TEST_F(LauncherFaults, EndsItsProcessesAndItselfWhenTheServiceDoesNotKnowIt) {
  base::ChildProcess launcher = Launch(Plan("while true; do echo x; sleep 0.01; done"));
  ASSERT_TRUE(AwaitOutput("x\n"));
  service.Forget();
  EXPECT_TRUE(WaitFor(launcher).ok());
  EXPECT_TRUE(NoProcessLeft());
}

TEST_F(LauncherFaults, EndsItsProcessesAndItselfWhenItsFolderAndTheServicesAreRemoved) {
  base::ChildProcess launcher = Launch(Plan("echo x; sleep 600"));
  ASSERT_TRUE(AwaitOutput("x\n"));
  ASSERT_TRUE(base::RemoveTree(folder.path()).ok());
  WaitFor(launcher);
  EXPECT_TRUE(NoProcessLeft());
}

TEST_F(LauncherFaults, WaitsForNoServiceWhoseFolderHasBeenRemovedWithItsOwn) {
  base::ChildProcess launcher = Launch(Plan(Lines(10)));
  ASSERT_TRUE(AwaitOutput("line 4\n"));
  service.Stop();
  OpenGate();
  ASSERT_TRUE(service.Await([&] { return NoProcessLeft(); }));
  ASSERT_FALSE(launcher.Wait(base::Deadline::After(absl::ZeroDuration())).ok());
  ASSERT_TRUE(base::RemoveTree(folder.path()).ok());
  WaitFor(launcher);
}

TEST_F(LauncherFaults, FarMoreOutputThanTheSpoolMayHoldArrivesWhole) {
  base::ChildProcess launcher = Launch(
      Plan("head -c 30000000 /dev/zero | tr '\\0' a; echo; head -c 1000 /dev/zero | tr '\\0' b"),
      1 << 20);
  EXPECT_TRUE(WaitFor(launcher).ok());
  EXPECT_EQ(service.Output(0, "stdout"),
            std::string(30000000, 'a') + "\n" + std::string(1000, 'b'));
  EXPECT_EQ(service.Events("finished").at(0)["ok"], true);
}

TEST_F(LauncherFaults, ASpoolThatStaysFullEndsTheJobWithThatReason) {
  service.RefuseOutput(true);
  base::ChildProcess launcher = Launch(Plan("exec yes"), 1 << 20);
  ASSERT_TRUE(service.AwaitEvent("exited"));
  EXPECT_EQ(service.Events("exited").at(0)["stopped"], true);
  service.RefuseOutput(false);
  WaitFor(launcher);
  const auto finished = service.Events("finished").at(0);
  EXPECT_EQ(finished["ok"], false);
  EXPECT_THAT(finished["reason"], HasSubstr("the spool of node n1 is full"));
}

}  // namespace
}  // namespace tutti::launch
