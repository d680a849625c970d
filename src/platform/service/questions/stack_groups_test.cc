#include "platform/service/questions/stack_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace tutti::service {
namespace {

using ::testing::ElementsAre;

spec::RankStacks Python(const std::string& function, int pid) {
  return {.processes = {{.pid = pid,
                         .command = absl::StrCat("python3 train.py --rank ", pid),
                         .python = absl::StrCat(
                             "Process ", pid, ": python3 train.py --rank ", pid, "\nThread ", pid,
                             pid % 2 == 0 ? " (idle)" : " (active)", ": \"MainThread\"\n    ",
                             function, " (train.py:7)\n    <module> (train.py:9)\n")}}};
}

TEST(StackGroupsTest, PutsRanksTogetherThatDoTheSame) {
  StackGroups groups(1 << 20);
  EXPECT_TRUE(groups.Add(5, Python("all_reduce", 105)));
  EXPECT_TRUE(groups.Add(1, Python("load", 101)));
  EXPECT_TRUE(groups.Add(0, Python("all_reduce", 100)));
  EXPECT_TRUE(groups.Add(2, Python("all_reduce", 102)));
  const std::vector<StackGroup> taken = groups.Take();
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_THAT(taken[0].ranks, ElementsAre(0, 2, 5));
  EXPECT_EQ(taken[0].shown, 5);
  EXPECT_EQ(taken[0].stacks.processes[0].pid, 105);
  EXPECT_THAT(taken[1].ranks, ElementsAre(1));
}

TEST(StackGroupsTest, TellsLinesAndNumbersOfProcessesApart) {
  spec::RankStacks two = Python("load", 1);
  two.processes.push_back(two.processes[0]);
  StackGroups groups(1 << 20);
  EXPECT_TRUE(groups.Add(0, Python("load", 1)));
  EXPECT_TRUE(groups.Add(1, two));
  EXPECT_EQ(groups.Take().size(), 2u);
}

TEST(StackGroupsTest, ComparesNeitherAddressesNorThreads) {
  EXPECT_EQ(
      ComparedText("Thread 2 (Thread 0x7f12ab (LWP 77) \"python3\"):\n#0  0x00007ff1 in poll ()"),
      ComparedText("Thread 3 (Thread 0x7e99cd (LWP 8) \"python3\"):\n#0  0x00007aa2 in poll ()"));
  EXPECT_NE(ComparedText("#0  0x00007ff1 in poll ()"), ComparedText("#0  0x00007ff1 in read ()"));
  EXPECT_NE(ComparedText("    f (a.py:1)"), ComparedText("    f (a.py:2)"));
  EXPECT_EQ(ComparedText("Thread 12 (python3), state S, in futex_wait, system call 202"),
            ComparedText("Thread 9 (python3), state S, in futex_wait, system call 202"));
}

TEST(StackGroupsTest, KeepsEqualStacksOnceHoweverManyThereAre) {
  StackGroups groups(4000);
  for (int rank = 0; rank < 1000; ++rank) EXPECT_TRUE(groups.Add(rank, Python("f", rank)));
  bool had_room = true;
  for (int rank = 1000; rank < 1100; ++rank) {
    had_room &= groups.Add(rank, Python(absl::StrCat("f", rank, "x"), rank));
  }
  EXPECT_FALSE(had_room);
  const std::vector<StackGroup> taken = groups.Take();
  EXPECT_EQ(taken[0].ranks.size(), 1000u);
  EXPECT_LT(taken.size(), 20u);
}

}  // namespace
}  // namespace tutti::service
