// Covers: delivery/service_link.cc, node/spool.cc, node/event_log.cc, output_forwarder.cc.
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <cstdlib>

#include "platform/launch/launcher_fixture.h"
#include "platform/launch/process/process_limit.h"

namespace tutti::launch {
namespace {

using ::testing::HasSubstr;

class LauncherFaults : public LauncherFixture {
 protected:
  ~LauncherFaults() override {
    if (mounted_) ::umount2(allocation().c_str(), MNT_DETACH);
  }
  // Puts the allocation's folder on a disk of its own. False: this user may not.
  bool MountSmallDisk() {
    std::filesystem::create_directory(allocation());
    mounted_ = ::mount("tutti-test", allocation().c_str(), "tmpfs", 0, "size=2m") == 0;
    return mounted_;
  }
  // To the last byte.
  void FillDisk() const {
    const auto fd = base::Open(allocation() / "filler", O_WRONLY | O_CREAT);
    ASSERT_TRUE(fd.ok()) << fd.status();
    for (size_t size : {size_t{1} << 16, size_t{1}}) {
      while (base::WriteAll(fd->get(), std::string(size, '0'), "filler").ok()) {
      }
    }
  }
  std::filesystem::path allocation() const { return folder.path() / "allocation"; }
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

 private:
  bool mounted_ = false;
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

TEST_F(LauncherFaults, AServiceThatTakesNothingForLongCostsNoJob) {
  service.RefuseOutput(true);
  base::ChildProcess launcher =
      Launch(Plan(absl::StrCat("head -c 4000000 /dev/zero | tr '\\0' a; echo; touch ",
                               gate().string(), "; echo end")),
             1 << 20);
  // Far longer than the launchers of these tests have patience.
  const int before = service.requests();
  ASSERT_TRUE(service.Await([&] { return service.requests() > before + 3; }));
  const base::Deadline patience = base::Deadline::After(absl::Seconds(1));
  ASSERT_TRUE(service.Await([&] { return patience.Expired(); }));
  EXPECT_FALSE(std::filesystem::exists(gate())) << "it waits in its writes";
  service.RefuseOutput(false);
  EXPECT_TRUE(WaitFor(launcher).ok());
  EXPECT_EQ(service.Output(0, "stdout"), std::string(4000000, 'a') + "\nend\n");
  EXPECT_EQ(service.Events("finished").at(0)["ok"], true);
}

// At most a second lies between two words of such a service.
constexpr absl::Duration kLimit = absl::Seconds(3);

TEST_F(LauncherFaults, AServiceWhoseDiskIsFullIsWaitedForLongerThanOneThatIsAway) {
  service.PutOutputOff(true);
  service.PutResultsOff(true);
  base::ChildProcess launcher =
      LaunchWithin(Plan("echo out; mkdir -p outputs; echo made >outputs/a"), kLimit);
  ASSERT_TRUE(service.AwaitEvent("finalizing"));
  TakeNothingFor(1.5 * kLimit);
  service.PutResultsOff(false);
  ASSERT_TRUE(service.Await([&] { return service.Files().contains("outputs/a"); }));
  const base::Deadline full = base::Deadline::After(1.5 * kLimit);
  ASSERT_TRUE(service.Await([&] { return full.Expired(); }));
  EXPECT_EQ(service.Output(0, "stdout"), "");
  service.PutOutputOff(false);
  EXPECT_TRUE(WaitFor(launcher).ok());
  EXPECT_EQ(service.Output(0, "stdout"), "out\n");
  EXPECT_EQ(service.Events("finished").at(0)["ok"], true);
}

TEST_F(LauncherFaults, AServiceThatHearsSignsOfLifeAndTakesNoResultsIsNotWaitedForForEver) {
  service.FailResults(true);
  spec::LaunchPlan plan = Plan("mkdir -p outputs; echo made >outputs/a");
  plan.nodes.push_back({"n2", "127.77.0.2", 1, 1});
  ::setenv("TUTTI_BEAT", "0.2", 1);
  base::ChildProcess launcher = LaunchWithin(plan, kLimit);
  ::unsetenv("TUTTI_BEAT");
  ASSERT_TRUE(service.AwaitEvent("finished"));
  EXPECT_EQ(service.Events("finished").at(0)["ok"], false);
  EXPECT_THAT(service.Events("finished").at(0)["reason"], HasSubstr("it cannot be kept"));
  WaitFor(launcher);
}

TEST_F(LauncherFaults, AServiceThatIsAwayForLongerThanTheLimitIsWaitedForNoMore) {
  base::ChildProcess launcher =
      LaunchWithin(Plan(absl::StrCat("while [ ! -e ", gate().string(), " ]; do sleep 0.01; done")),
                   absl::Milliseconds(300));
  ASSERT_TRUE(service.AwaitEvent("started"));
  service.Stop();
  OpenGate();
  EXPECT_FALSE(WaitFor(launcher).ok());
  EXPECT_TRUE(service.Events("finished").empty());
}

TEST_F(LauncherFaults, AFullDiskForLongCostsNoJob) {
  if (!MountSmallDisk()) GTEST_SKIP() << "may not mount a small tmpfs";
  base::ChildProcess launcher = Launch(Plan(absl::StrCat(
      "echo begin; while [ ! -e ", gate().string(),
      " ]; do sleep 0.01; done; i=0; while [ $i -lt 40000 ]; do echo line $i; i=$((i+1)); done")));
  ASSERT_TRUE(AwaitOutput("begin\n"));
  service.RefuseOutput(true);  // so that nothing is given back
  FillDisk();
  OpenGate();
  ASSERT_TRUE(service.AwaitEvent("held"));
  EXPECT_THAT(service.Events("held").at(0)["note"], HasSubstr("the disk of node n1 is full"));
  const base::Deadline patience = base::Deadline::After(absl::Seconds(1));
  ASSERT_TRUE(service.Await([&] { return patience.Expired(); }));
  EXPECT_TRUE(service.Events("exited").empty());
  service.RefuseOutput(false);
  std::filesystem::remove(allocation() / "filler");
  EXPECT_TRUE(WaitFor(launcher).ok());
  EXPECT_THAT(service.Output(0, "stdout"), ::testing::EndsWith("\nline 39999\n"));
  EXPECT_EQ(service.Events("held").back()["note"], "");
  EXPECT_EQ(service.Events("finished").at(0)["ok"], true);
}

TEST_F(LauncherFaults, OnAFullDiskALauncherStillEndsWhenItIsTold) {
  if (!MountSmallDisk()) GTEST_SKIP() << "may not mount a small tmpfs";
  base::ChildProcess launcher = Launch(Plan("exec yes"), uint64_t{1} << 30);
  service.RefuseOutput(true);
  ASSERT_TRUE(service.AwaitEvent("held"));
  ASSERT_EQ(::kill(launcher.pid(), SIGTERM), 0);
  ASSERT_TRUE(service.AwaitEvent("exited"));
  service.RefuseOutput(false);
  WaitFor(launcher);
  EXPECT_TRUE(NoProcessLeft());
}

// In the moment that is left to what the ranks have left behind.
TEST_F(LauncherFaults, OnAFullDiskACancelIsHeardAlsoAfterTheLastRankHasEnded) {
  if (!MountSmallDisk()) GTEST_SKIP() << "may not mount a small tmpfs";
  base::ChildProcess launcher = Launch(Plan(absl::StrCat(
      "while [ ! -e ", gate().string(), " ]; do sleep 0.01; done; ",
      "(trap '' TERM; exec setsid sleep 60 >/dev/null 2>&1) & ", "head -c 30000 /dev/zero")));
  ASSERT_TRUE(service.AwaitEvent("started"));
  FillDisk();
  OpenGate();
  ASSERT_TRUE(service.AwaitEvent("exited"));
  ASSERT_EQ(::kill(launcher.pid(), SIGTERM), 0);
  WaitFor(launcher);
  EXPECT_EQ(service.Events("finished").at(0)["ok"], false);
  EXPECT_TRUE(NoProcessLeft());
}

}  // namespace
}  // namespace tutti::launch
