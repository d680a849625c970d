#include "platform/launch/stacks/stack_reading.h"

#include "platform/launch/stacks/stacks_fixture.h"
#include "spec/json/question.h"

namespace tutti::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::vector<std::string> kPython = {"/usr/bin/python3", "-c", "import time; time.sleep(1e6)"};
constexpr char kSaysFrames[] =
    "echo 'Reading symbols'; echo 'Thread 1 (LWP 7 \"x\"):'; echo '#0  poll (...)'";

class StackReadingTest : public StacksFixture {
 protected:
  spec::RankStacks ReadOne(pid_t pid, bool native = false) {
    const StackRequest request{
        .leaders = {{3, pid}}, .ranks = {3}, .native = native, .end = base::Deadline::After(time)};
    return ReadStacks(request, limits, cancelled).at(3);
  }
  static spec::ProcessStacks FirstOf(const spec::RankStacks& stacks) {
    EXPECT_FALSE(stacks.processes.empty());
    return stacks.processes.empty() ? spec::ProcessStacks{} : stacks.processes.front();
  }

  absl::Duration time = absl::Hours(1);
  StackTools limits = {
      .path = tools(), .python_limit = absl::Hours(1), .native_limit = absl::Hours(1)};
};

TEST_F(StackReadingTest, HasPySpyReadPythonsAndStopsNobody) {
  Tool("py-spy", "echo $@");
  Tool("gdb", "touch " + tools() + "/gdb-ran");
  const pid_t pid = Start(kPython);
  const spec::RankStacks stacks = ReadOne(pid);
  EXPECT_EQ(stacks.error, "");
  ASSERT_EQ(stacks.processes.size(), 1u);
  EXPECT_EQ(stacks.processes[0].pid, pid);
  EXPECT_EQ(stacks.processes[0].command, "/usr/bin/python3 -c import time; time.sleep(1e6)");
  EXPECT_EQ(stacks.processes[0].python, absl::StrCat("dump --nonblocking --pid ", pid, "\n"));
  EXPECT_EQ(stacks.processes[0].kernel, "");
  EXPECT_THAT(stacks.processes[0].notes, IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "gdb-ran"));
}

TEST_F(StackReadingTest, SaysWhatLinuxTellsOfWhatIsNoPython) {
  Tool("py-spy", "touch " + tools() + "/py-spy-ran");
  const pid_t pid = Start({"/bin/sleep", "1000"});
  EXPECT_THAT(FirstOf(ReadOne(pid)).kernel, HasSubstr("(sleep), state "));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "py-spy-ran"));
}

TEST_F(StackReadingTest, HasGdbReadThemWhereThatIsAskedFor) {
  Tool("py-spy", "echo frames");
  Tool("gdb", kSaysFrames);
  const spec::ProcessStacks process = FirstOf(ReadOne(Start(kPython), /*native=*/true));
  EXPECT_EQ(process.python, "frames\n");
  EXPECT_EQ(process.native, "Thread 1 (LWP 7 \"x\"):\n#0  poll (...)\n");
}

TEST_F(StackReadingTest, SaysThatThereIsNoTool) {
  const spec::ProcessStacks process = FirstOf(ReadOne(Start(kPython), /*native=*/true));
  EXPECT_THAT(process.notes, ElementsAre(HasSubstr("pip install py-spy"), HasSubstr("gdb is not")));
  EXPECT_THAT(process.kernel, HasSubstr("Thread "));
}

TEST_F(StackReadingTest, TriesAgainWhereAStackHasChangedMeanwhileAndSaysWhatIsWrong) {
  const std::string count = tools() + "/count";
  Tool("py-spy", "echo x >>" + count + "; [ $(wc -l <" + count +
                     ") = 3 ] && echo frames && exit\n" +
                     "echo 'Error: it has changed' >&2; exit 1");
  EXPECT_EQ(FirstOf(ReadOne(Start(kPython))).python, "frames\n");
  Tool("py-spy", "echo 'Error: Permission Denied' >&2; exit 1");
  const spec::ProcessStacks process = FirstOf(ReadOne(Start(kPython)));
  EXPECT_THAT(process.notes, ElementsAre(HasSubstr("Permission Denied")));
  EXPECT_THAT(process.notes, ElementsAre(HasSubstr("look")));
  EXPECT_THAT(process.kernel, HasSubstr("Thread "));
}

TEST_F(StackReadingTest, GoesOnWithoutAToolThatHangsOrSaysNothing) {
  Tool("py-spy", "sleep 1000");
  Tool("gdb", "echo 'ptrace: Operation not permitted.'");
  limits.python_limit = base::Patient(absl::Seconds(1));
  const spec::ProcessStacks process = FirstOf(ReadOne(Start(kPython), /*native=*/true));
  EXPECT_THAT(process.notes, ElementsAre(HasSubstr("py-spy did not end within"),
                                         HasSubstr("gdb has read nothing: ptrace")));
}

TEST_F(StackReadingTest, ReadsAllProcessesOfARankAndNoneOfOthers) {
  Tool("py-spy", "echo $4");
  const pid_t shell =
      Start({"/bin/sh", "-c", "/usr/bin/python3 -c 'import time; time.sleep(1e6)'; :"});
  const pid_t other = Start({"/bin/sleep", "1000"});
  StackRequest request{
      .leaders = {{0, shell}, {1, other}}, .ranks = {0, 5}, .end = base::Deadline::After(time)};
  std::map<int, spec::RankStacks> stacks;
  ASSERT_TRUE(base::AwaitPatiently(absl::Seconds(30), [&] {
    stacks = ReadStacks(request, limits, cancelled);
    return stacks.at(0).processes.size() == 2 && !stacks.at(0).processes[1].python.empty();
  }));
  EXPECT_EQ(stacks.size(), 2u);
  EXPECT_EQ(stacks.at(0).processes[0].pid, shell);
  EXPECT_EQ(stacks.at(0).processes[1].python, absl::StrCat(stacks.at(0).processes[1].pid, "\n"));
  EXPECT_TRUE(stacks.at(5).processes.empty());
  EXPECT_THAT(stacks.at(5).error, HasSubstr("no process"));
}

TEST_F(StackReadingTest, LeavesOutWhatThereIsNoTimeFor) {
  Tool("py-spy", "touch " + tools() + "/ran");
  Tool("gdb", "touch " + tools() + "/ran");
  time = absl::ZeroDuration();
  EXPECT_THAT(FirstOf(ReadOne(Start(kPython), /*native=*/true)).notes,
              ElementsAre(HasSubstr("no time left"), HasSubstr("no time left")));
  time = absl::Hours(1);
  cancelled = true;
  EXPECT_EQ(FirstOf(ReadOne(Start(kPython), /*native=*/true)).python, "");
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "ran"));
}

TEST_F(StackReadingTest, BoundsWhatARankSays) {
  Tool("py-spy", "head -c 100000000 /dev/zero | tr '\\0' '\\377'");
  std::string starts = "for i in 1 2 3 4 5 6; do /usr/bin/python3 -c 'import time; ";
  starts += "time.sleep(1e6)' & done; wait";
  const pid_t pid = Start({"/bin/sh", "-c", starts});
  spec::RankStacks stacks;
  ASSERT_TRUE(base::AwaitPatiently(absl::Seconds(60), [&] {
    stacks = ReadOne(pid);
    return stacks.processes.size() == 7 && stacks.processes[6].kernel.empty();
  }));
  EXPECT_LT(spec::ToJson(stacks).size(), spec::kLongestAnswer);
  EXPECT_THAT(stacks.processes[1].python, HasSubstr("left out here"));
  EXPECT_THAT(stacks.processes[6].notes, ElementsAre(HasSubstr("more than 1 MiB")));
}

TEST(FramesOfGdbTest, AreAllThatIsKept) {
  EXPECT_EQ(FramesOfGdb("[New LWP 8]\n0x1 in poll ()\n\nThread 1 (LWP 7):\n#0  a ()\n#1  b ()\n"
                        "[77 bytes are left out here]\n[Inferior 1 detached]\n"),
            "Thread 1 (LWP 7):\n#0  a ()\n#1  b ()\n[77 bytes are left out here]\n");
  EXPECT_EQ(FramesOfGdb("ptrace: Operation not permitted."), "");
}

}  // namespace
}  // namespace tutti::launch
