#include "platform/launch/usage/process_counters.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tutti::launch {
namespace {

constexpr char kStat[] =
    "42 (a) b (c) D 1 42 42 0 -1 4194560 100 0 0 0 150 50 25 75 20 0 1 0 12345 1000 200 0";

TEST(ProcessCountersTest, TellsOwnTimeAndThatOfChildren) {
  const auto counters =
      CountersIn(kStat, "900 300 100 5 0 60 0", "rchar: 7\nread_bytes: 4096\nwrite_bytes: 8192\n");
  ASSERT_TRUE(counters.has_value());
  EXPECT_EQ(counters->state, 'D');
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  EXPECT_NEAR(counters->cpu, 200.0 / ticks, 1e-9);
  EXPECT_NEAR(counters->cpu_waited, 100.0 / ticks, 1e-9);
  EXPECT_EQ(counters->began, 12345);
  EXPECT_EQ(counters->parent, 1);
  EXPECT_EQ(counters->memory, 200.0 * static_cast<double>(::sysconf(_SC_PAGESIZE)));
  EXPECT_TRUE(counters->has_disk);
  EXPECT_EQ(counters->disk_read, 4096);
  EXPECT_EQ(counters->disk_write, 8192);
}

TEST(ProcessCountersTest, TellsWhatLinuxDoesNotSay) {
  const auto counters = CountersIn(kStat, "", "");
  ASSERT_TRUE(counters.has_value());
  EXPECT_FALSE(counters->has_disk);
  EXPECT_FALSE(CountersIn("", "", "").has_value());
  EXPECT_FALSE(CountersIn("42 (a) R 1", "", "").has_value());
}

TEST(ProcessCountersTest, ReadsNothingOfAProcessThatHasEnded) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  ProcessFiles files(child);
  EXPECT_TRUE(files.Read(/*keep=*/true).has_value());
  EXPECT_TRUE(files.Read(/*keep=*/false).has_value());
  EXPECT_TRUE(files.Read(/*keep=*/true).has_value());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(files.Read(/*keep=*/true).has_value());
}

}  // namespace
}  // namespace tutti::launch
