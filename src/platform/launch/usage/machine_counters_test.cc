#include "platform/launch/usage/machine_counters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kNetDev[] =
    "Inter-|   Receive                   |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast|bytes packets\n"
    "    lo: 99 1 0 0 0 0 0 0 99 1 0 0 0 0 0 0\n"
    "  eth0: 100 1 0 0 0 0 0 0 10 1 0 0 0 0 0 0\n"
    " bond0: 100 1 0 0 0 0 0 0 10 1 0 0 0 0 0 0\n";

class MachineCountersTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) const {
    ASSERT_TRUE(base::MakeDirectories((root_ / path).parent_path()).ok());
    ASSERT_TRUE(base::WriteFileAtomic(root_ / path, text).ok());
  }
  const base::TemporaryDirectory folder_;
  const fs::path root_ = folder_.path();
};

TEST_F(MachineCountersTest, CountsBusyTimeWithoutWaitsAndWhatWasStolen) {
  Write("proc/stat", "cpu  100 20 30 1000 500 4 6 999 50 0\ncpu0 1 2 3\n");
  Write("proc/meminfo", "MemTotal: 100 kB\nMemAvailable:    40 kB\n");
  const MachineCounters counters = ReadMachine(root_);
  ASSERT_TRUE(counters.cpu && counters.memory_available);
  EXPECT_NEAR(*counters.cpu, 160.0 / static_cast<double>(::sysconf(_SC_CLK_TCK)), 1e-9);
  EXPECT_EQ(*counters.memory_available, 40 * 1024);
  EXPECT_FALSE(counters.net_received.has_value());
}

TEST_F(MachineCountersTest, CountsACardOnceThoughItIsBonded) {
  Write("proc/net/dev", kNetDev);
  Write("sys/class/net/eth0/device/vendor", "");
  EXPECT_EQ(ReadMachine(root_).net_received, 100);
  EXPECT_EQ(ReadMachine(root_).net_sent, 10);
}

TEST_F(MachineCountersTest, CountsAllButTheLoopbackWhereThereIsNoCard) {
  Write("proc/net/dev", kNetDev);
  EXPECT_EQ(ReadMachine(root_).net_received, 200);
}

TEST_F(MachineCountersTest, FindsTheLimitsAboveACgroup) {
  Write("sys/fs/cgroup/job/memory.max", "1000\n");
  Write("sys/fs/cgroup/job/memory.current", "900\n");
  Write("sys/fs/cgroup/job/memory.stat", "anon 1\ninactive_file 300\n");
  Write("sys/fs/cgroup/job/step/memory.max", "max\n");
  const auto found = MemoryCgroups("0::/job/step\n", root_);
  ASSERT_THAT(found, ElementsAre(root_ / "sys/fs/cgroup/job"));
  EXPECT_EQ(LeftOfCgroup(found[0]), 400);
}

TEST_F(MachineCountersTest, KnowsTheLimitsOfTheFirstVersion) {
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  Write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1000\n");
  Write("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "1500\n");
  const auto found = MemoryCgroups("5:cpu:/a\n4:memory:/a\n", root_);
  ASSERT_EQ(found.size(), 1);
  EXPECT_EQ(LeftOfCgroup(found[0]), 0) << "no less than nothing";
  EXPECT_THAT(MemoryCgroups("", root_), IsEmpty());
}

}  // namespace
}  // namespace tutti::launch
