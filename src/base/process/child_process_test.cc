#include "base/process/child_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "base/file.h"
#include "base/test_patience.h"

namespace tutti::base {
namespace {

ChildOptions Shell(std::string script) {
  ChildOptions options;
  options.arguments = {"sh", "-c", std::move(script)};
  options.environment = {{"PATH", "/usr/bin:/bin"}};
  return options;
}

Deadline WithinTwentySeconds() { return Deadline::After(Patient(absl::Seconds(20))); }

TEST(ChildProcess, ReportsTheExitCode) {
  auto child = ChildProcess::Start(Shell("exit 7"));
  ASSERT_TRUE(child.ok()) << child.status();
  const auto status = child->Wait(WithinTwentySeconds());
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(status->ToString(), "exit code 7");
}

TEST(ChildProcess, ReportsTheSignalThatKilledIt) {
  auto child = ChildProcess::Start(Shell("kill -9 $$"));
  ASSERT_TRUE(child.ok());
  EXPECT_EQ(child->Wait(WithinTwentySeconds())->ToString(), "signal 9 (SIGKILL)");
}

TEST(ChildProcess, GetsOnlyTheEnvironmentItIsGiven) {
  TemporaryDirectory directory;
  ChildOptions options = Shell("env > out; pwd >> out");
  options.environment["ANSWER"] = "42";
  options.directory = directory.path();
  auto child = ChildProcess::Start(options);
  ASSERT_TRUE(child.ok());
  ASSERT_TRUE(child->Wait(WithinTwentySeconds())->ok());
  const std::string out = *ReadFile(directory.path() / "out");
  EXPECT_NE(out.find("ANSWER=42"), std::string::npos);
  EXPECT_EQ(out.find("HOME="), std::string::npos);
  EXPECT_NE(out.find(directory.path().string()), std::string::npos);
}

TEST(ChildProcess, SaysWhatCouldNotBeStarted) {
  ChildOptions options = Shell("");
  options.arguments = {"no-such-program-here"};
  EXPECT_NE(ChildProcess::Start(options).status().message().find("no-such-program-here"),
            absl::string_view::npos);
  options = Shell("");
  options.directory = "/no/such/folder";
  EXPECT_FALSE(ChildProcess::Start(options).ok());
  options = Shell("");
  options.before_exec = [] { return EPERM; };
  EXPECT_EQ(ChildProcess::Start(options).status().code(), absl::StatusCode::kPermissionDenied);
}

TEST(ChildProcess, NamesWhatIsTooLongForTheKernel) {
  ChildOptions options = Shell(std::string(140'000, 'x'));
  EXPECT_EQ(ChildProcess::Start(options).status().message(),
            "start /usr/bin/sh: Argument list too long: the command has 140000 bytes, and Linux "
            "takes 131071: put it into a script");
  options = Shell("true");
  options.environment["LABELS"] = std::string(131'065, 'x');
  EXPECT_EQ(ChildProcess::Start(options).status().message(),
            "start /usr/bin/sh: Argument list too long: variable LABELS has 131072 bytes, and "
            "Linux takes 131071: put it into a file");
}

TEST(ChildProcess, AWaitEndsAtItsDeadlineAndTheGroupCanBeKilled) {
  auto child = ChildProcess::Start(Shell("sleep 100 & sleep 100"));
  ASSERT_TRUE(child.ok());
  EXPECT_EQ(child->Wait(Deadline::After(absl::Milliseconds(20))).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  ASSERT_TRUE(child->SignalGroup(SIGKILL).ok());
  EXPECT_EQ(child->Wait(WithinTwentySeconds())->signal, SIGKILL);
}

TEST(ChildProcess, FindsDescendantsAndStartTimes) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ChildOptions options = Shell("sleep 100 & echo ready; wait");
  options.stdout_fd = ends[1];
  auto child = ChildProcess::Start(options);
  ASSERT_TRUE(child.ok());
  char byte;
  ASSERT_EQ(::read(ends[0], &byte, 1), 1);
  EXPECT_EQ(Descendants(child->pid()).size(), 1u);
  EXPECT_GT(*ProcessStartTime(child->pid()), 0u);
  ASSERT_TRUE(child->SignalGroup(SIGKILL).ok());
  ASSERT_TRUE(child->Wait(WithinTwentySeconds()).ok());
  EXPECT_FALSE(ProcessStartTime(child->pid()).ok());
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace tutti::base
