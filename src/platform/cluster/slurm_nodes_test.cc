#include "platform/cluster/slurm_nodes.h"

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

TEST(NodeState, IsReadAsSlurm2411PrintsIt) {
  const auto nodes = ReadNodeStates(
      "NodeName=n2 Arch=x86_64 CoresPerSocket=1  CPUAlloc=1 CPUEfctv=4 CPUTot=4 CPULoad=4.05 "
      "AvailableFeatures=(null) ActiveFeatures=(null) Gres=(null) NodeAddr=10.77.0.12 "
      "NodeHostName=n2 Version=24.11.5 OS=Linux 6.18.44 #1 SMP PREEMPT_DYNAMIC @0  RealMemory=4096 "
      "AllocMem=100 FreeMem=22075 Sockets=4 Boards=1 State=MIXED+COMPLETING ThreadsPerCore=1 "
      "TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A Partitions=main,scavenge,graceful  "
      "BootTime=2026-11-21T02:39:33 SlurmdStartTime=2026-11-21T21:44:01 "
      "LastBusyTime=2026-11-21T21:44:07 ResumeAfterTime=None CfgTRES=cpu=4,mem=4G,billing=4 "
      "AllocTRES=cpu=1,mem=100M CurrentWatts=0 AveWatts=0 \n");
  ASSERT_EQ(nodes.size(), 1);
  EXPECT_EQ(nodes[0].address, "10.77.0.12");
  EXPECT_EQ(nodes[0].state, "running");
  EXPECT_EQ(nodes[0].reason, "");
  EXPECT_EQ(nodes[0].cpus, 4);
  EXPECT_EQ(nodes[0].cpus_used, 1);
}

}  // namespace
}  // namespace tutti::cluster
