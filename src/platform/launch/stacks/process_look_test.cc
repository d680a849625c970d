#include "platform/launch/stacks/process_look.h"

#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_split.h"
#include "platform/launch/stacks/stacks_fixture.h"

namespace tutti::launch {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class ProcessLookTest : public StacksFixture {};

TEST_F(ProcessLookTest, SaysWhatAProcessIs) {
  const pid_t pid = Start({"/bin/sleep", "1000"});
  const auto facts = LookAtProcess(pid);
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->command, "/bin/sleep 1000");
  EXPECT_FALSE(facts->is_python);
  EXPECT_FALSE(facts->is_contained);
  EXPECT_THAT(facts->path, StartsWith("/bin:" + tools() + ":"));
  EXPECT_TRUE(StateOf(pid, facts->began));
  EXPECT_FALSE(StateOf(pid, facts->began + 1));
  EXPECT_THAT(KernelStacks(pid), HasSubstr(absl::StrCat("Thread ", pid, " (sleep), state ")));
}

TEST_F(ProcessLookTest, TellsAPython) {
  const pid_t pid = Start({"/usr/bin/python3", "-c", "import time; time.sleep(1000)"});
  const auto facts = LookAtProcess(pid);
  ASSERT_TRUE(facts);
  EXPECT_TRUE(facts->is_python);
}

TEST_F(ProcessLookTest, KnowsNoneThatHasEnded) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(0);
  siginfo_t info = {};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(LookAtProcess(pid));  // it is there until it is waited for
  ASSERT_EQ(::waitpid(pid, nullptr, 0), pid);
  EXPECT_FALSE(LookAtProcess(pid));
  EXPECT_EQ(KernelStacks(pid), "");
}

TEST_F(ProcessLookTest, FindsProgramsThatMayBeRun) {
  const std::string tool = Tool("tool", "true");
  ASSERT_TRUE(base::WriteFileAtomic(folder.path() / "text", "", 0644).ok());
  EXPECT_EQ(FindProgram("tool", "/nowhere::relative:" + tools()), tool);
  EXPECT_EQ(FindProgram("text", tools()), "");
  EXPECT_EQ(FindProgram("tool", ""), "");
  EXPECT_EQ(FindProgram(folder.path().filename().native(), folder.path().parent_path().native()),
            "");
}

}  // namespace
}  // namespace tutti::launch
