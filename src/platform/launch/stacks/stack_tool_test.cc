#include "platform/launch/stacks/stack_tool.h"

#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "platform/launch/process/own_children.h"
#include "platform/launch/stacks/process_look.h"
#include "platform/launch/stacks/stacks_fixture.h"

namespace tutti::launch {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr absl::Duration kAnHour = absl::Hours(1);
constexpr char kGdb[] = "/usr/bin/gdb";

class StackToolTest : public StacksFixture {
 protected:
  absl::StatusOr<std::string> Run(const std::string& tool, absl::Duration limit = kAnHour) {
    return RunTool({tool}, {.time = limit}, cancelled);
  }
  // Returns whether no process has that number, or one that has ended.
  static bool IsGone(const std::string& number) {
    pid_t pid = 0;
    return absl::SimpleAtoi(number, &pid) && !LookAtProcess(pid);
  }
  static bool IsStopped(pid_t pid) {
    const auto facts = LookAtProcess(pid);
    return facts && (facts->state == 'T' || facts->state == 't');
  }
};

TEST_F(StackToolTest, YieldsToTheJob) {
  const auto said = Run(Tool("tool", "nice; cat /proc/self/oom_score_adj; ulimit -c; echo $LANG"));
  ASSERT_TRUE(said.ok()) << said.status();
  EXPECT_EQ(*said, "19\n1000\n0\nC.UTF-8\n");
}

TEST_F(StackToolTest, IsKilledAtItsLimitWithAllThatItHasStarted) {
  const std::string file = (folder.path() / "below").native();
  const auto said = Run(Tool("tool", "trap '' TERM\n(trap '' TERM; sleep 1000) &\necho $! >" +
                                         file + "\nsleep 1000\n"),
                        base::Patient(absl::Seconds(3)));
  EXPECT_TRUE(absl::IsDeadlineExceeded(said.status())) << said.status();
  EXPECT_THAT(std::string(said.status().message()), HasSubstr("tool did not end within"));
  const std::string below(absl::StripAsciiWhitespace(Content("below")));
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] { return IsGone(below); }));
}

TEST_F(StackToolTest, IsKilledOnceItIsCancelledAndIsNoneOfTheJobsProcesses) {
  const std::string tool = Tool("tool", "echo $$ >" + (folder.path() / "own.new").native() +
                                            "; mv " + (folder.path() / "own.new").native() + " " +
                                            (folder.path() / "own").native() + "; sleep 1000");
  absl::StatusOr<std::string> said;
  std::thread thread([&] { said = Run(tool); });
  EXPECT_TRUE(AwaitFile("own"));
  pid_t pid = 0;
  EXPECT_TRUE(absl::SimpleAtoi(Content("own"), &pid));
  EXPECT_THAT(WithoutOwnChildren({pid, 1}), Not(Contains(pid)));
  cancelled = true;
  thread.join();
  EXPECT_TRUE(absl::IsCancelled(said.status())) << said.status();
  EXPECT_TRUE(IsGone(absl::StrCat(pid)));
  EXPECT_TRUE(absl::IsCancelled(Run(Tool("later", "echo later")).status()));
}

TEST_F(StackToolTest, MayPrintWhatItWants) {
  const auto said = Run(Tool("tool", "head -c 100000000 /dev/zero | tr '\\0' x; echo end"));
  ASSERT_TRUE(said.ok()) << said.status();
  EXPECT_LT(said->size(), 300u << 10);
  EXPECT_THAT(*said, HasSubstr("bytes are left out here"));
  EXPECT_THAT(said->substr(said->size() - 5), HasSubstr("end"));
}

TEST_F(StackToolTest, SaysHowItFailed) {
  const auto died = Run(Tool("tool", "echo; echo 'Permission denied' >&2; exit 3"));
  EXPECT_EQ(died.status().message(), "tool ended with exit code 3: Permission denied");
  const auto killed = Run(Tool("killed", "kill -9 $$"));
  EXPECT_EQ(killed.status().message(), "killed ended with signal 9 (SIGKILL)");
  EXPECT_FALSE(Run(tools() + "/none").ok());
}

TEST_F(StackToolTest, LeavesNoProcessStopped) {
  const pid_t pid = Start({"/bin/sleep", "1000"});
  const uint64_t began = LookAtProcess(pid)->began;
  const std::string stop = absl::StrCat("kill -STOP ", pid, "\n");
  const auto run = [&](const std::string& script, absl::Duration limit) {
    return RunStoppingTool({Tool("tool", stop + script)}, pid, began, {.time = limit}, cancelled);
  };
  EXPECT_TRUE(run("echo said", kAnHour).ok());
  EXPECT_FALSE(IsStopped(pid));
  EXPECT_FALSE(run("exit 1", kAnHour).ok());
  EXPECT_FALSE(IsStopped(pid));
  EXPECT_TRUE(
      absl::IsDeadlineExceeded(run("sleep 1000", base::Patient(absl::Seconds(1))).status()));
  EXPECT_FALSE(IsStopped(pid));
}

TEST_F(StackToolTest, LeavesOneAloneThatSomebodyElseHasStopped) {
  const pid_t pid = Start({"/bin/sleep", "1000"});
  const uint64_t began = LookAtProcess(pid)->began;
  ASSERT_EQ(::kill(pid, SIGSTOP), 0);
  ASSERT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] { return IsStopped(pid); }));
  const auto said =
      RunStoppingTool({Tool("tool", "touch ran")}, pid, began, {.time = kAnHour}, cancelled);
  EXPECT_TRUE(absl::IsFailedPrecondition(said.status())) << said.status();
  EXPECT_TRUE(IsStopped(pid));
  EXPECT_TRUE(absl::IsNotFound(
      RunStoppingTool({"/bin/true"}, pid, began + 1, {.time = kAnHour}, cancelled).status()));
}

// A tracer that is killed while it holds the process, and one that is killed as it comes.
TEST_F(StackToolTest, LetsGoOnWhatADebuggerHeldThatWasKilled) {
  if (!std::filesystem::exists(kGdb)) GTEST_SKIP() << "there is no gdb";
  const pid_t pid = Start({"/bin/sh", "-c", "while :; do :; done"});
  const uint64_t began = LookAtProcess(pid)->began;
  const std::string holds = (folder.path() / "holds").native();
  const std::string tool =
      Tool("tool", absl::StrCat("exec ", kGdb, " -nx -batch -p ", pid, " -ex 'shell touch ", holds,
                                "; sleep 1000'\n"));
  std::thread canceller([&] {
    EXPECT_TRUE(AwaitFile("holds"));
    EXPECT_TRUE(IsStopped(pid));
    cancelled = true;
  });
  const auto said = RunStoppingTool({tool}, pid, began, {.time = kAnHour}, cancelled);
  canceller.join();
  EXPECT_TRUE(absl::IsCancelled(said.status())) << said.status();
  EXPECT_FALSE(IsStopped(pid));
  cancelled = false;
  for (int limit = 1; limit < 400; limit *= 3) {
    RunStoppingTool({tool}, pid, began, {.time = absl::Milliseconds(limit)}, cancelled)
        .IgnoreError();
    EXPECT_FALSE(IsStopped(pid)) << limit;
  }
}

}  // namespace
}  // namespace tutti::launch
