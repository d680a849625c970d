#include "base/process/command.h"

#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "base/failing_reads_for_tests.h"
#include "base/test_patience.h"

namespace tutti::base {
namespace {

absl::StatusOr<CommandResult> Shell(const std::string& script, absl::string_view input,
                                    absl::Duration limit = Patient(absl::Seconds(20))) {
  ChildOptions options;
  options.arguments = {"/bin/sh", "-c", script};
  return RunCommand(options, input, Deadline::After(limit));
}

TEST(Command, GivesBothOutputsAndTheExitCode) {
  const auto result = Shell("cat; echo no >&2; exit 3", "a line\n");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->out, "a line\n");
  EXPECT_EQ(result->err, "no\n");
  EXPECT_EQ(result->exit.code, 3);
}

TEST(Command, ReadsOnAfterAReadThatHadNothing) {
  failing_reads = 3;
  const auto result = Shell("head -c 300000 /dev/zero", "");  // more than a pipe holds
  failing_reads = 0;
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->out.size(), 300000u);
}

TEST(Command, NeedsNobodyWhoReadsALongInput) {
  const auto result = Shell("exit 0", std::string(1 << 20, 'x'));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->exit.ok());
}

TEST(Command, KeepsTheHeadAndTheTailOfALongOutput) {
  ChildOptions options;
  options.arguments = {"/bin/sh", "-c", "echo first; head -c 300000 /dev/zero; echo last"};
  const auto result = RunCommand(options, "", Deadline::After(Patient(absl::Seconds(20))), 20);
  ASSERT_TRUE(result.ok()) << result.status();
  const std::string head = "first\n" + std::string(4, '\0');
  const std::string tail = std::string(5, '\0') + "last\n";
  EXPECT_EQ(result->out, head + "\n[299991 bytes are left out here]\n" + tail);
  EXPECT_EQ(result->err, "");
}

TEST(Command, IsEndedAtItsDeadline) {
  const auto result = Shell("sleep 600", "", absl::Milliseconds(50));
  EXPECT_TRUE(absl::IsDeadlineExceeded(result.status())) << result.status();
}

TEST(Command, WhoseOutputIsClosedStillHasADeadline) {
  const auto result = Shell("exec >&- 2>&-; sleep 600", "", absl::Milliseconds(200));
  EXPECT_TRUE(absl::IsDeadlineExceeded(result.status())) << result.status();
}

TEST(Command, IsEndedWhenItIsCancelled) {
  std::atomic<bool> cancelled = false;
  ChildOptions options;
  options.arguments = {"/bin/sh", "-c", "echo up; sleep 600"};
  std::thread other([&] { cancelled = true; });
  const auto result =
      RunCommand(options, "", Deadline::After(Patient(absl::Seconds(60))), 20, &cancelled);
  other.join();
  EXPECT_TRUE(absl::IsCancelled(result.status())) << result.status();
}

TEST(Command, AQuotedWordReachesTheShellAsItIs) {
  const std::string word = "it's \"$HOME\" `x` \\ *\n";
  const auto result = Shell("printf %s " + ShellQuoted(word), "");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->out, word);
}

}  // namespace
}  // namespace tutti::base
