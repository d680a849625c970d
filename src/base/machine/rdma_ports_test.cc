#include "base/machine/rdma_ports.h"

#include <gmock/gmock.h>

#include "base/file.h"

namespace tutti::base {
namespace {
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A folder as the kernel's /sys/class/infiniband is one.
class RdmaTest : public ::testing::Test {
 protected:
  void AddPort(const std::string& device, const std::string& port, const std::string& state,
               const std::string& type = "1: CA\n") {
    const auto folder = devices_.path() / device;
    ASSERT_TRUE(MakeDirectories(folder / "ports" / port).ok());
    ASSERT_TRUE(ReplaceFile(folder / "node_type", type).ok());
    ASSERT_TRUE(ReplaceFile(folder / "ports" / port / "state", state).ok());
  }
  const TemporaryDirectory devices_;
};

TEST_F(RdmaTest, FindsThePortsWhoseLinkIsUp) {
  EXPECT_THAT(ActiveRdmaPorts(devices_.path()), IsEmpty());
  EXPECT_THAT(ActiveRdmaPorts("/no/such/folder"), IsEmpty());
  AddPort("mlx5_1", "1", "4: ACTIVE\n");
  AddPort("mlx5_0", "1", "1: DOWN\n");
  AddPort("mlx5_0", "2", "4: ACTIVE\n");
  AddPort("irdma0", "1", "4: ACTIVE\n", "4: RNIC\n");
  EXPECT_THAT(ActiveRdmaPorts(devices_.path()), ElementsAre("mlx5_0 port 2", "mlx5_1 port 1"));
}

}  // namespace
}  // namespace tutti::base
