#include "platform/container/container_processes.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/process/child_process.h"
#include "base/test_patience.h"

namespace tutti::container {
namespace {

// A process that has ended and that nobody has waited for has no command line any more.
bool IsAlive(pid_t pid) {
  const auto line = base::ReadFile(absl::StrCat("/proc/", pid, "/cmdline"));
  return line.ok() && !line->empty();
}

base::Deadline Soon() { return base::Deadline::After(base::Patient(absl::Seconds(20))); }

class ContainerProcessesTest : public ::testing::Test {
 protected:
  // The processes that the shells have started outlive them, and would hold this program's output
  // open.
  ~ContainerProcessesTest() override {
    std::error_code error;
    for (const auto& process : std::filesystem::directory_iterator("/proc", error)) {
      const std::string cwd = std::filesystem::read_symlink(process.path() / "cwd", error).native();
      int pid = 0;
      if (!error && absl::StartsWith(cwd, folder_.path().native()) &&
          absl::SimpleAtoi(process.path().filename().native(), &pid) && pid != ::getpid()) {
        ::kill(pid, SIGKILL);
      }
    }
  }
  // The shell by another program's name, in its own folder, so that it finds the script "run"
  // there.
  base::ChildProcess Start(const std::string& program, std::vector<std::string> arguments,
                           uid_t user = ::getuid()) {
    const std::filesystem::path copy = folder_.path() / program;
    if (!std::filesystem::exists(copy)) std::filesystem::copy_file("/bin/sh", copy);
    base::ChildOptions options{.arguments = std::move(arguments)};
    options.arguments.insert(options.arguments.begin(), copy);
    options.environment = {{"PATH", "/usr/bin:/bin"}};
    options.directory = folder_.path();
    options.die_with_parent = true;
    options.before_exec = [user] { return ::setuid(user) == 0 ? 0 : errno; };
    return *base::ChildProcess::Start(options);
  }
  // Stands for a container's monitor, which keeps a process below it.
  base::ChildProcess Monitor(const std::string& container) {
    return Start("conmon", {"-c", "sleep 600; true", "-n", container});
  }
  // Stands for `podman run`.
  base::ChildProcess Run(const std::string& container) {
    EXPECT_TRUE(base::WriteFileAtomic(folder_.path() / "run", "sleep 600; true\n").ok());
    return Start("podman", {"run", absl::StrCat("--name=", container), "image"});
  }

  const base::TemporaryDirectory folder_;
};

TEST_F(ContainerProcessesTest, EndsTheMonitorsOfThatNameAloneWithWhatIsBelowThem) {
  base::ChildProcess mine = Monitor("tutti-a.1-0-0"), other = Monitor("tutti-a.1-0-1");
  std::vector<pid_t> below;
  for (const base::Deadline deadline = Soon(); below.empty() && !deadline.Expired();) {
    below = base::Descendants(mine.pid());
  }
  ASSERT_EQ(below.size(), 1u);
  EXPECT_TRUE(EndMonitorsOf({"tutti-a.1-0-0", "tutti-a.1-0-2"}, Soon()).ok());
  const auto ended = mine.Wait(Soon());
  ASSERT_TRUE(ended.ok());
  EXPECT_EQ(ended->signal, SIGKILL);
  const base::Deadline deadline = Soon();
  while (IsAlive(below.front()) && !deadline.Expired()) {
  }
  EXPECT_FALSE(IsAlive(below.front()));
  EXPECT_TRUE(IsAlive(other.pid()));
}

TEST_F(ContainerProcessesTest, LeavesWhatAnotherUserCallsSo) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root: it starts a process of another user";
  constexpr uid_t kNobody = 65534;
  std::filesystem::permissions(folder_.path(), std::filesystem::perms{0755});
  base::ChildProcess theirs =
      Start("conmon", {"-c", "sleep 600; true", "-n", "tutti-a.1-0-0"}, kNobody);
  EXPECT_TRUE(EndMonitorsOf({"tutti-a.1-0-0"}, Soon()).ok());
  EXPECT_TRUE(IsAlive(theirs.pid()));
  ::kill(theirs.pid(), SIGKILL);
  EXPECT_TRUE(theirs.Wait(Soon()).ok());
}

TEST_F(ContainerProcessesTest, KillsWhatRunsInContainersAndLeavesTheirMonitorsToTellOfIt) {
  base::ChildProcess podman = Run("tutti-a.1-0-0"), monitor = Monitor("tutti-a.1-0-0");
  base::ChildProcess other = Monitor("tutti-a.1-0-1");
  for (const pid_t one : {monitor.pid(), other.pid()}) {
    ASSERT_TRUE(base::AwaitPatiently(absl::Seconds(20),
                                     [&] { return base::Descendants(one).size() == 1; }));
  }
  KillWithin({"tutti-a.1-0-0", "tutti-a.1-0-2"});
  EXPECT_EQ(podman.Wait(Soon())->signal, SIGKILL);
  EXPECT_TRUE(monitor.Wait(Soon())->ok()) << "it goes on behind what was killed";
  EXPECT_EQ(base::Descendants(other.pid()).size(), 1u);
}

TEST_F(ContainerProcessesTest, EndsThePodmansThatRunAContainerOfThatNameAlone) {
  base::ChildProcess mine = Run("tutti-a.1-0-0"), other = Run("tutti-a.1-0-1");
  base::ChildProcess monitor = Monitor("tutti-a.1-0-0");
  EXPECT_TRUE(EndPodmansOf({"tutti-a.1-0-0"}, Soon()).ok());
  const auto ended = mine.Wait(Soon());
  ASSERT_TRUE(ended.ok());
  EXPECT_EQ(ended->signal, SIGKILL);
  EXPECT_TRUE(IsAlive(other.pid()));
  EXPECT_TRUE(IsAlive(monitor.pid())) << "it is for podman to remove";
}

TEST_F(ContainerProcessesTest, EndsWhatWaitsInAFolderToBecomeTheFirstProcessOfAContainer) {
  EXPECT_TRUE(base::WriteFileAtomic(folder_.path() / "init", "cd $1; sleep 600; true\n").ok());
  EXPECT_TRUE(base::WriteFileAtomic(folder_.path() / "run", "cd $1; sleep 600; true\n").ok());
  std::vector<base::ChildProcess> processes;
  const auto start = [&](const std::string& program, const std::string& script,
                         const std::string& work) {
    const std::filesystem::path in = folder_.path() / work;
    EXPECT_TRUE(base::MakeDirectories(in).ok());
    processes.push_back(Start(program, {script, in}));
    const pid_t pid = processes.back().pid();
    EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] {
      std::error_code error;
      return std::filesystem::read_symlink(absl::StrCat("/proc/", pid, "/cwd"), error) == in;
    }));
    return pid;
  };
  const pid_t mine = start("runc", "init", "a.1/work");
  const pid_t others = start("runc", "init", "a.12/work"), run = start("runc", "run", "a.1/work");
  std::filesystem::remove(folder_.path() / "a.1" / "work");
  EXPECT_TRUE(EndWaitingIn(folder_.path() / "a.1", Soon()).ok());
  EXPECT_FALSE(IsAlive(mine));
  EXPECT_TRUE(IsAlive(others));
  EXPECT_TRUE(IsAlive(run));
}

}  // namespace
}  // namespace tutti::container
