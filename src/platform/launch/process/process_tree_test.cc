#include "platform/launch/process/process_tree.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <map>
#include <string>

#include "base/process/child_process.h"
#include "base/test_patience.h"

namespace tutti::launch {
namespace {

base::ChildProcess Sleeper(const std::map<std::string, std::string>& environment = {}) {
  base::ChildOptions options;
  options.arguments = {"/bin/sleep", "600"};
  options.environment = environment;
  options.die_with_parent = true;
  return *base::ChildProcess::Start(options);
}

// They ask about all children of this process, so what earlier tests have left ends before.
class EndingDescendantsTest : public ::testing::Test {
 protected:
  EndingDescendantsTest() {
    const auto deadline = base::Deadline::After(base::Patient(absl::Seconds(20)));
    EndingDescendants left(absl::ZeroDuration());
    while (!left.Continue() && !deadline.Expired()) ::waitpid(-1, nullptr, 0);
    EXPECT_FALSE(deadline.Expired());
  }
};

TEST_F(EndingDescendantsTest, TellsTheSparedOnesOnceTheyAreSparedNoMore) {
  base::ChildProcess starter = Sleeper(), rank = Sleeper();
  EndingDescendants ending(absl::Minutes(1));
  EXPECT_FALSE(ending.Continue({starter.pid()}));
  EXPECT_EQ(rank.Wait(base::Deadline::After(base::Patient(absl::Seconds(20))))->signal, SIGTERM);
  EXPECT_FALSE(ending.Continue({starter.pid()}));
  EXPECT_FALSE(starter.Wait(base::Deadline::After(absl::ZeroDuration())).ok());
  EXPECT_FALSE(ending.Continue());
  EXPECT_EQ(starter.Wait(base::Deadline::After(base::Patient(absl::Seconds(20))))->signal, SIGTERM);
  EXPECT_TRUE(ending.Continue());
}

TEST_F(EndingDescendantsTest, KillsTheSparedOnesToo) {
  base::ChildProcess starter = Sleeper();
  EndingDescendants ending(absl::ZeroDuration());
  EXPECT_FALSE(ending.Continue({starter.pid()}));
  EXPECT_EQ(starter.Wait(base::Deadline::After(base::Patient(absl::Seconds(20))))->signal, SIGKILL);
}

bool WasKilled(base::ChildProcess& child) {
  const auto end = child.Wait(base::Deadline::After(absl::ZeroDuration()));
  return end.ok() && end->signal == SIGKILL;
}

TEST(EndProcessesOfTest, ThoseOfAnotherVirtualNodeAreLeftToItsLauncher) {
  const auto of = [](const char* allocation, const char* node) {
    return Sleeper({{"TUTTI_ALLOCATION_ID", allocation}, {"TUTTI_NODE_NAME", node}});
  };
  base::ChildProcess own = of("tree.1", "n1"), other = of("tree.1", "n2"),
                     later = of("tree.1-2", "n1");
  base::ChildProcess anywhere = Sleeper({{"TUTTI_ALLOCATION_ID", "tree.1"}});
  const auto soon = [] { return base::Deadline::After(base::Patient(absl::Seconds(20))); };
  EXPECT_TRUE(EndProcessesOf("tree.1", "n1", soon()).ok());
  EXPECT_TRUE(WasKilled(own));
  EXPECT_TRUE(WasKilled(anywhere));
  EXPECT_FALSE(WasKilled(other));
  EXPECT_FALSE(WasKilled(later));
  EXPECT_TRUE(EndProcessesOf("tree.1", "", soon()).ok());
  EXPECT_TRUE(WasKilled(other));
  EXPECT_FALSE(WasKilled(later));
}

}  // namespace
}  // namespace tutti::launch
