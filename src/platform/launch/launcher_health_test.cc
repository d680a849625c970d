// A launcher on a node that no service looks at.
// Covers: hooks/health_hook.cc.
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>

#include "platform/launch/launcher_fixture.h"

namespace tutti::launch {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class LauncherHealth : public LauncherFixture {
 protected:
  spec::LaunchPlan Checked(std::string command, const std::string& check) const {
    spec::LaunchPlan plan = Plan(std::move(command));
    plan.checks = spec::NodeChecks{.command = check};
    return plan;
  }
  std::string mark() const { return (folder.path() / "mark").native(); }
};

TEST_F(LauncherHealth, RunsNothingOnANodeThatIsIll) {
  Run(Checked("echo ran", "echo the fan is loud; exit 1"));
  EXPECT_THAT(Kinds(), ElementsAre("preparing", "finished"));
  const auto end = service.Events().back();
  EXPECT_EQ(end["ok"], false);
  EXPECT_EQ(end["ill"], "program: the fan is loud");
  EXPECT_EQ(end["reason"], "it is ill: program: the fan is loud");
}

TEST_F(LauncherHealth, LooksOnceMoreAfterAProcessThatFailed) {
  const std::string check = "if [ -e " + mark() + " ]; then echo broke; exit 1; fi";
  Run(Checked("touch " + mark() + "; exit 3", check));
  ASSERT_EQ(service.Events("finalizing").size(), 1u);
  EXPECT_EQ(service.Events("finalizing").front()["ill"], "program: broke");
  EXPECT_EQ(service.Events().back()["ok"], true) << "the rank's failure is its own event";
}

TEST_F(LauncherHealth, AfterAJobThatWentWellNothingIsLookedAt) {
  const std::string check = "if [ -e " + mark() + " ]; then echo broke; exit 1; fi";
  Run(Checked("touch " + mark(), check));
  EXPECT_FALSE(service.Events("finalizing").front().contains("ill"));
}

TEST_F(LauncherHealth, ALookIsGivenUpWhenTheJobIsToEnd) {
  base::ChildProcess launcher = Launch(Checked("echo ran", "touch " + mark() + "; exec sleep 600"));
  ASSERT_TRUE(service.Await([&] { return std::filesystem::exists(mark()); }));
  ::kill(launcher.pid(), SIGTERM);
  WaitFor(launcher);
  EXPECT_THAT(Kinds(), Not(Contains("started")));
  EXPECT_FALSE(service.Events().back().contains("ill"));
}

// A pipe that nobody reads from is where the look writes: it hangs as on a file server that is
// away.
TEST_F(LauncherHealth, ALookAtADiskThatHangsIsGivenUpToo) {
  const spec::LaunchPlan plan = Checked("echo ran", "");
  const std::filesystem::path probe = NodeFolders(plan.directory).scratch() / ".tutti-probe";
  std::filesystem::create_directories(probe.parent_path());
  ASSERT_EQ(::mkfifo(probe.c_str(), 0600), 0);
  base::ChildProcess launcher = Launch(plan);
  ASSERT_TRUE(service.Await([&] { return !Kinds().empty(); }));
  ::kill(launcher.pid(), SIGTERM);
  WaitFor(launcher);
  EXPECT_TRUE(std::filesystem::is_fifo(probe)) << "the look has not ended, which would remove it";
  EXPECT_THAT(Kinds(), ElementsAre("preparing", "unlaunched", "finished"));
  EXPECT_FALSE(service.Events().back().contains("ill"));
}

TEST_F(LauncherHealth, TheLookAfterAFailureIsGivenUpWhenTheJobIsToEnd) {
  const std::string ran = (folder.path() / "ran").native();
  spec::LaunchPlan plan =
      Checked("touch " + ran + "; exit 3",
              "if [ -e " + ran + " ]; then touch " + mark() + "; exec sleep 600; fi");
  plan.checks->timeout_seconds = 600;
  base::ChildProcess launcher = Launch(plan);
  ASSERT_TRUE(service.Await([&] { return std::filesystem::exists(mark()); }));
  ::kill(launcher.pid(), SIGTERM);
  WaitFor(launcher);
  EXPECT_FALSE(service.Events("finalizing").front().contains("ill"));
  EXPECT_EQ(service.Events().back()["ok"], true) << "the rank's failure is its own event";
}

TEST_F(LauncherHealth, TheLookAfterAFailureIsGivenUpWhereTheDiskHangs) {
  const spec::LaunchPlan plan = Checked("mkfifo $TMPDIR/.tutti-probe; exit 3", "");
  base::ChildProcess launcher = Launch(plan);
  ASSERT_TRUE(service.AwaitEvent("exited"));
  // It may not look yet when it is told first.
  EXPECT_TRUE(service.Await([&] {
    ::kill(launcher.pid(), SIGTERM);
    return launcher.Wait(base::Deadline::After(absl::ZeroDuration())).ok();
  }));
  EXPECT_EQ(service.Events("finalizing").size(), 1u);
  EXPECT_EQ(service.Events().back()["kind"], "finished");
}

}  // namespace
}  // namespace tutti::launch
