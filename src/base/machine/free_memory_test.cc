#include "base/machine/free_memory.h"

#include <gtest/gtest.h>

#include "base/file.h"

namespace tutti::base {
namespace {

class FreeMemoryTest : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    const auto file = root_.path() / path;
    ASSERT_TRUE(MakeDirectories(file.parent_path()).ok());
    ASSERT_TRUE(ReplaceFile(file, text).ok());
  }
  const TemporaryDirectory root_;
};

TEST_F(FreeMemoryTest, IsWhatTheKernelCallsAvailable) {
  EXPECT_FALSE(FreeMemory(root_.path()).ok());
  Write("proc/meminfo", "MemTotal: 2000 kB\nMemFree: 10 kB\nMemAvailable:    1000 kB\n");
  EXPECT_EQ(*FreeMemory(root_.path()), 1000 * 1024);
}

TEST_F(FreeMemoryTest, IsWhatTheTightestControlGroupLeaves) {
  Write("proc/meminfo", "MemAvailable: 1000 kB\n");
  Write("proc/self/cgroup", "0::/slurm/job_7\n");
  Write("sys/fs/cgroup/slurm/job_7/memory.max", "max\n");
  Write("sys/fs/cgroup/slurm/memory.max", "300000\n");
  Write("sys/fs/cgroup/slurm/memory.current", "250000\n");
  Write("sys/fs/cgroup/slurm/memory.stat", "anon 1\ninactive_file 50000\n");
  EXPECT_EQ(*FreeMemory(root_.path()), 100000);
  Write("sys/fs/cgroup/slurm/job_7/memory.max", "90000\n");
  Write("sys/fs/cgroup/slurm/job_7/memory.current", "95000\n");
  EXPECT_EQ(*FreeMemory(root_.path()), 0);
}

TEST(FreeMemory, OfThisMachineIsSome) { EXPECT_GT(FreeMemory().value_or(0), 0); }

}  // namespace
}  // namespace tutti::base
