#include "platform/launch/open_mpi.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/file.h"

namespace tutti::launch {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsSupersetOf;
using ::testing::Key;
using ::testing::Not;

spec::LaunchPlan TwoByTwoMpi() {
  spec::LaunchPlan plan;
  plan.nodes = {{"n1", "127.77.0.1", 0, 2}, {"n2", "127.77.0.2", 2, 2}};
  plan.distribution.kind = spec::DistributionKind::kMpi;
  plan.start_port = 6104;
  plan.directory = "/a";
  return plan;
}

TEST(WantsMpiTest, OnlyForSeveralProcessesOfAnMpiJobThatDoesNotSayDirect) {
  spec::LaunchPlan plan = TwoByTwoMpi();
  EXPECT_TRUE(WantsMpi(plan));
  plan.environment_variables[kMpiVariable] = "direct";
  EXPECT_FALSE(WantsMpi(plan));
  plan = TwoByTwoMpi();
  plan.distribution.kind = spec::DistributionKind::kPyTorch;
  EXPECT_FALSE(WantsMpi(plan));
  plan = TwoByTwoMpi();
  plan.nodes = {{"n1", "127.77.0.1", 0, 1}};
  EXPECT_FALSE(WantsMpi(plan));
}

TEST(FindOpenMpiTest, NeedsTheStarterAndItsDaemon) {
  const base::TemporaryDirectory folder;
  spec::LaunchPlan plan = TwoByTwoMpi();
  plan.nodes = {{"n1", "127.77.0.1", 0, 2}};
  const Variables path = {{"PATH", "/no/such:" + folder.path().string()}};
  const std::string mpirun = (folder.path() / "orterun").string();
  ASSERT_TRUE(base::WriteFileAtomic(mpirun, "", 0755).ok());
  EXPECT_EQ(FindOpenMpi(plan, path), "");
  ASSERT_TRUE(base::WriteFileAtomic(folder.path() / "orted", "", 0755).ok());
  EXPECT_EQ(FindOpenMpi(plan, path), mpirun);
  plan.nodes.push_back({"n2", "127.77.0.2", 2, 2});
  plan.nodes[0].name = "a-host-that-this-is-not";
  EXPECT_EQ(FindOpenMpi(plan, path), "");
}

TEST(MpirunCommandTest, PlacesTheRanksAsThePlanDoes) {
  const auto command = MpirunCommand(TwoByTwoMpi(), "/usr/bin/orterun");
  EXPECT_EQ(command.front(), "/usr/bin/orterun");
  EXPECT_THAT(command, IsSupersetOf({"plm_rsh_agent", "tutti-launcher launch-agent", "--host",
                                     "n1:2,n2:2", "-np", "4", "slot", "--wdir", "/"}));
  EXPECT_EQ(command[command.size() - 2], "tutti-launcher");
  EXPECT_EQ(command.back(), "launch-rank");
}

TEST(StarterEnvironmentTest, SaysNotWhichRankItIs) {
  NodeFacts facts;
  facts.own = {{"PATH", "/usr/bin"}, {"SLURM_JOB_ID", "3"}, {"OMPI_MCA_btl", "tcp,self"}};
  const Variables variables = StarterEnvironment(TwoByTwoMpi(), facts, "/s/door", "/s");
  for (const char* name :
       {"RANK", "LOCAL_RANK", "OMPI_COMM_WORLD_RANK", "HOROVOD_RANK", "SLURM_JOB_ID"}) {
    EXPECT_THAT(variables, Not(Contains(Key(name))));
  }
  EXPECT_EQ(variables.at("OMPI_MCA_btl"), "tcp,self");
  EXPECT_EQ(variables.at("TUTTI_LAUNCH_DOOR"), "/s/door");
  EXPECT_EQ(variables.at("PATH"), "/s:/usr/bin");
}

}  // namespace
}  // namespace tutti::launch
