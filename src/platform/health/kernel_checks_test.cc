#include "platform/health/kernel_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace tutti::health {
namespace {

using Outcome = NodeCheck::Outcome;

class MachineChecksTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    const std::filesystem::path file = root_.path() / name;
    ASSERT_TRUE(base::MakeDirectories(file.parent_path()).ok());
    ASSERT_TRUE(base::ReplaceFile(file, text).ok());
  }
  const base::TemporaryDirectory root_;
};

TEST_F(MachineChecksTest, MemoryThatIsNearlyUsedUpIsIll) {
  EXPECT_EQ(CheckMemory(root_.path()).outcome, Outcome::kUnknown);
  Write("proc/meminfo",
        "MemTotal:       65536000 kB\nMemFree: 1 kB\nMemAvailable:   32768000 kB\n");
  EXPECT_EQ(CheckMemory(root_.path()).outcome, Outcome::kWell);
  EXPECT_EQ(CheckMemory(root_.path()).detail, "31.2 GiB of 62.5 GiB available");
  Write("proc/meminfo", "MemTotal:       65536000 kB\nMemAvailable:   102400 kB\n");
  EXPECT_TRUE(CheckMemory(root_.path()).ill());
  EXPECT_EQ(CheckMemory(root_.path()).detail, "100 MiB of 62.5 GiB available");
  EXPECT_EQ(CheckMemory().outcome, Outcome::kWell) << CheckMemory().detail;
}

TEST_F(MachineChecksTest, ErrorsThatEccCouldNotCorrectAreIll) {
  Write("proc/meminfo", "MemTotal:       65536000 kB\nMemAvailable:   32768000 kB\n");
  Write("sys/devices/system/edac/mc/mc0/ue_count", "0\n");
  Write("sys/devices/system/edac/mc/mc1/ue_count", "0\n");
  EXPECT_EQ(CheckMemory(root_.path()).outcome, Outcome::kWell);
  Write("sys/devices/system/edac/mc/mc1/ue_count", "2\n");
  EXPECT_TRUE(CheckMemory(root_.path()).ill());
  EXPECT_EQ(CheckMemory(root_.path()).detail,
            "2 errors of memory since the boot that could not be corrected");
}

TEST_F(MachineChecksTest, InterfacesThatAreDownOrGoneAreNamed) {
  Write("sys/class/net/eth0/operstate", "up\n");
  Write("sys/class/net/eth1/operstate", "down\n");
  Write("sys/class/net/dummy0/operstate", "unknown\n");
  Write("sys/class/net/dummy0/carrier", "1\n");
  EXPECT_EQ(CheckLinks({"eth0", "dummy0"}, root_.path()).outcome, Outcome::kWell);
  EXPECT_EQ(CheckLinks({"eth0", "dummy0"}, root_.path()).detail, "eth0, dummy0 up");
  EXPECT_TRUE(CheckLinks({"eth0", "eth1", "eth2"}, root_.path()).ill());
  EXPECT_EQ(CheckLinks({"eth0", "eth1", "eth2"}, root_.path()).detail,
            "link eth1 is down, link eth2 is not there");
  Write("sys/class/net/dummy0/carrier", "0\n");
  EXPECT_EQ(CheckLinks({"dummy0"}, root_.path()).detail, "link dummy0 is down");
}

TEST_F(MachineChecksTest, AnRdmaDeviceIsUpWithOnePortUnlessOneIsNamed) {
  Write("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
  Write("sys/class/infiniband/mlx5_0/ports/2/state", "1: DOWN\n");
  EXPECT_EQ(CheckLinks({"mlx5_0", "mlx5_0:1"}, root_.path()).outcome, Outcome::kWell);
  EXPECT_EQ(CheckLinks({"mlx5_0:2"}, root_.path()).detail, "link mlx5_0:2 is 1: DOWN");
  EXPECT_EQ(CheckLinks({"mlx5_0:3"}, root_.path()).detail, "link mlx5_0:3 is not there");
}

}  // namespace
}  // namespace tutti::health
