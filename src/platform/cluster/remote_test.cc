#include "platform/cluster/remote.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "base/test_patience.h"

namespace tutti::cluster {
namespace {

using ::testing::HasSubstr;

// Returns the result of a script where ssh does this.
absl::StatusOr<std::string> RunWhereSsh(const std::string& does, absl::Duration limit) {
  const base::TemporaryDirectory folder;
  const auto made = base::WriteFileAtomic(folder.path() / "ssh", "#!/bin/sh\n" + does, 0755);
  if (!made.ok()) return made;
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", absl::StrCat(folder.path().native(), ":", path).c_str(), 1);
  auto answer = SshRemote("", "").Run("h1", "hostname", base::Deadline::After(limit));
  ::setenv("PATH", path.c_str(), 1);
  return answer;
}

TEST(SshRemoteTest, HandsTheScriptOnAsInput) {
  EXPECT_EQ(RunWhereSsh("read script; echo $script", base::Patient(absl::Seconds(30))).value(),
            "hostname\n");
}

TEST(SshRemoteTest, SaysWhatMayHoldAHostUpThatDoesNotAnswer) {
  const absl::Status status = RunWhereSsh("exec sleep 600", absl::Milliseconds(50)).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_THAT(status.message(), HasSubstr("h1: what was asked of it by ssh did not end in time"));
  EXPECT_THAT(status.message(), HasSubstr("a start-up file of its shell"));
}

TEST(SshRemoteTest, NamesTheRemedyOfWhatSshSays) {
  const auto said = [](const std::string& text) {
    const auto status =
        RunWhereSsh("echo '" + text + "' >&2; exit 255", base::Patient(absl::Seconds(30))).status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(said("root@h1: Permission denied (publickey)."), HasSubstr("ssh-copy-id h1"));
  EXPECT_THAT(said("Host key verification failed."), HasSubstr("accept its key"));
  EXPECT_THAT(said("ssh: Could not resolve hostname h1: Name or service not known"),
              HasSubstr("put its name into DNS"));
}

TEST(SshRemoteTest, TellsWhatAFailedScriptSaidLast) {
  const absl::Status status =
      RunWhereSsh("echo a >&2; echo b >&2; exit 3", base::Patient(absl::Seconds(30))).status();
  EXPECT_EQ(status, absl::AbortedError("h1: b"));
}

}  // namespace
}  // namespace tutti::cluster
