#include "platform/cluster/node_state.h"

#include <gmock/gmock.h>

namespace tutti::cluster {
namespace {

TEST(NodeState, IsReadWithItsReason) {
  const auto nodes = ReadNodeStates(
      "NodeName=h1 Arch=x86_64 CPUAlloc=1 CPUTot=4 NodeAddr=10.0.0.1 NodeHostName=h1 "
      "OS=Linux 6.1 #1 SMP State=DOWN+CLOUD ThreadsPerCore=1 Partitions=main "
      "Reason=resume failed: no such machine; see /x/h1.log [slurm@2026-11-20T23:00:00]\n"
      "slurm_load_node error\n");
  ASSERT_EQ(nodes.size(), 1);
  EXPECT_EQ(nodes[0].name, "h1");
  EXPECT_EQ(nodes[0].address, "10.0.0.1");
  EXPECT_EQ(nodes[0].state, "unusable");
  EXPECT_EQ(nodes[0].reason, "resume failed: no such machine; see /x/h1.log");
  EXPECT_EQ(nodes[0].cpus, 4);
  EXPECT_EQ(nodes[0].cpus_used, 1);
}

}  // namespace
}  // namespace tutti::cluster
