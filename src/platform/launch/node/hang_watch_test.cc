#include "platform/launch/node/hang_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "platform/launch/node/exit_reason.h"

namespace tutti::launch {
namespace {

// A parent of vfork waits in state D until its child has begun a program, as for a file server.
[[noreturn]] void WaitWithoutEnd() {
  if (::vfork() == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (true) ::pause();
  }
  ::_exit(1);
}

TEST(HangWatch, EndsAProcessThatIsStuckAndSaysWhy) {
  const base::TemporaryDirectory folder;
  const std::filesystem::path note = folder.path() / "hung";
  const pid_t pid = ::fork();
  if (pid == 0) {
    const HangWatch watch(note, absl::Milliseconds(400));
    WaitWithoutEnd();
  }
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_THAT(ReadExitReason(note), ::testing::HasSubstr("stuck in the kernel for 400ms"));
}

TEST(HangWatch, LetsAProcessBeThatWaitsForSomethingElse) {
  const base::TemporaryDirectory folder;
  {
    const HangWatch watch(folder.path() / "hung", absl::Milliseconds(16));
    ::poll(nullptr, 0, 100);
  }
  EXPECT_EQ(ReadExitReason(folder.path() / "hung"), "");
}

TEST(HangWatch, TheLimitIsTheUsersOrTenMinutes) {
  EXPECT_EQ(HangLimit(), absl::Minutes(10));
  ::setenv("TUTTI_HANG_LIMIT", "30", 1);
  EXPECT_EQ(HangLimit(), absl::Seconds(30));
  ::setenv("TUTTI_HANG_LIMIT", "soon", 1);
  EXPECT_EQ(HangLimit(), absl::Minutes(10));
  ::unsetenv("TUTTI_HANG_LIMIT");
}

}  // namespace
}  // namespace tutti::launch
