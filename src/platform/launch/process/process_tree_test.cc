#include "platform/launch/process/process_tree.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "base/process/child_process.h"
#include "base/test_patience.h"

namespace tutti::launch {
namespace {

base::ChildProcess Sleeper() {
  base::ChildOptions options;
  options.arguments = {"/bin/sleep", "600"};
  options.die_with_parent = true;
  return *base::ChildProcess::Start(options);
}

TEST(EndingDescendantsTest, TellsTheSparedOnesOnceTheyAreSparedNoMore) {
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

TEST(EndingDescendantsTest, KillsTheSparedOnesToo) {
  base::ChildProcess starter = Sleeper();
  EndingDescendants ending(absl::ZeroDuration());
  EXPECT_FALSE(ending.Continue({starter.pid()}));
  EXPECT_EQ(starter.Wait(base::Deadline::After(base::Patient(absl::Seconds(20))))->signal, SIGKILL);
}

}  // namespace
}  // namespace tutti::launch
