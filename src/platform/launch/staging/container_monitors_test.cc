#include "platform/launch/staging/container_monitors.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/process/child_process.h"
#include "base/test_patience.h"

namespace tutti::launch {
namespace {

// A process that has ended and that nobody has waited for has no command line any more.
bool IsAlive(pid_t pid) {
  const auto line = base::ReadFile(absl::StrCat("/proc/", pid, "/cmdline"));
  return line.ok() && !line->empty();
}

base::Deadline Soon() { return base::Deadline::After(base::Patient(absl::Seconds(20))); }

class ContainerMonitorsTest : public ::testing::Test {
 protected:
  ContainerMonitorsTest() { std::filesystem::copy_file("/bin/sh", folder_.path() / "conmon"); }

  // Stands for a container's monitor, which keeps a process below it.
  base::ChildProcess Monitor(const std::string& container) {
    base::ChildOptions options;
    options.arguments = {folder_.path() / "conmon", "-c", "sleep 600; true", "-n", container};
    options.die_with_parent = true;
    return *base::ChildProcess::Start(options);
  }

  const base::TemporaryDirectory folder_;
};

TEST_F(ContainerMonitorsTest, EndsTheMonitorsOfThatNameAloneWithWhatIsBelowThem) {
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

}  // namespace
}  // namespace tutti::launch
