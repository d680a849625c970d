#include "platform/launch/environment/slurm_placement.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace tutti::launch {
namespace {

spec::LaunchPlan PlanOfTwo() {
  spec::LaunchPlan plan;
  plan.nodes = {{"node-0", "0.0.0.0", 0, 2}, {"node-1", "0.0.0.0", 2, 2}};
  return plan;
}

TEST(SlurmPlacement, NamesTheNodesInTheirOrder) {
  spec::LaunchPlan plan = PlanOfTwo();
  ASSERT_TRUE(ApplySlurmPlacement("n7 127.0.0.7;n1 localhost;", plan).ok());
  EXPECT_EQ(plan.nodes[0].name, "n7");
  EXPECT_EQ(plan.nodes[0].address, "127.0.0.7");
  EXPECT_EQ(plan.nodes[1].address, "127.0.0.1");
  EXPECT_EQ(plan.nodes[1].first_rank, 2);
}

TEST(SlurmPlacement, OfANodeAloneIsWhereItsNameLeadsToOrItsLoopbackAddress) {
  for (const char* name : {"localhost", "no-such-node.invalid"}) {
    spec::LaunchPlan plan;
    plan.nodes = {{"node-0", "0.0.0.0", 0, 2}};
    ASSERT_TRUE(ApplySlurmPlacement(absl::StrCat(name, ";"), plan).ok());
    EXPECT_EQ(plan.nodes[0].name, name);
    EXPECT_EQ(plan.nodes[0].address, "127.0.0.1");
  }
}

TEST(SlurmPlacement, RefusesAnotherNumberOfNodes) {
  spec::LaunchPlan plan = PlanOfTwo();
  EXPECT_EQ(ApplySlurmPlacement("n7 10.0.0.7;", plan).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ApplySlurmPlacement(" ;n1 10.0.0.1", plan).code(), absl::StatusCode::kInvalidArgument);
}

TEST(SlurmPlacement, ANodeWhoseNameLeadsToItsLoopbackGoesByTheAddressThatReachesAnother) {
  spec::LaunchPlan plan = PlanOfTwo();
  ASSERT_TRUE(ApplySlurmPlacement("n1 localhost;n2 127.0.0.2;", plan).ok());
  EXPECT_EQ(plan.nodes[0].address, "127.0.0.1") << "all are on one machine";
  ASSERT_TRUE(ApplySlurmPlacement("n1 localhost;n2 10.0.0.2;", plan).ok());
  const bool has_network = std::system("ip route get 10.0.0.2 >/dev/null 2>&1") == 0;
  EXPECT_EQ(plan.nodes[0].address == "127.0.0.1", !has_network);
  plan.node_index = 1;
  ASSERT_TRUE(ApplySlurmPlacement("n1 localhost;n2 10.0.0.2;", plan).ok());
  EXPECT_EQ(plan.nodes[1].address, "10.0.0.2");
}

TEST(SlurmPlacement, ThatTheClusterToldItToEndStaysInItsFolder) {
  const base::TemporaryDirectory ours("tutti-place"), theirs("tutti-place");
  const auto is_noted = [](const base::TemporaryDirectory& folder) {
    NoteStopRequest(folder.path());
    return std::filesystem::exists(folder.path() / "told");
  };
  ::unsetenv("TUTTI_GANG");
  EXPECT_FALSE(is_noted(theirs)) << "nobody's cluster";
  ::setenv("TUTTI_GANG", "n7 10.0.0.7;", 1);
  EXPECT_TRUE(is_noted(theirs));
  EXPECT_TRUE(absl::IsCancelled(ReasonOfStopRequest(theirs.path(), absl::Now())));
  ASSERT_TRUE(base::ReplaceFile(ours.path() / "stop", "").ok());
  EXPECT_FALSE(is_noted(ours)) << "by tutti";
  EXPECT_TRUE(ReasonOfStopRequest(ours.path(), absl::Now()).ok());
  ::unsetenv("TUTTI_GANG");
}

TEST(SlurmPlacement, ThatItsTimeIsUsedUpIsSaidNearItsEndAlone) {
  ::setenv("TUTTI_GANG", "n7 10.0.0.7;", 1);
  ::setenv("SLURM_JOB_END_TIME", "1795208535", 1);
  const absl::Time end = absl::FromUnixSeconds(1795208535);
  const auto why = [](absl::Time now) {
    return std::string(ReasonOfStopRequest("/no/such/file", now).message());
  };
  EXPECT_EQ(why(end - absl::Seconds(70)), "it has used up the time that it was given in Slurm");
  EXPECT_EQ(why(end - absl::Minutes(5)), "it was cancelled or preempted in Slurm");
  ::setenv("SLURM_JOB_END_TIME", "N/A", 1);
  EXPECT_EQ(why(end), "it was cancelled or preempted in Slurm");
  ::unsetenv("SLURM_JOB_END_TIME");
  ::unsetenv("TUTTI_GANG");
}

TEST(SlurmPlacement, WhenItsTimeIsUpSlurmIsAskedWhereItHasNotSaidSo) {
  const base::TemporaryDirectory bin;
  const std::string path = std::getenv("PATH");
  ASSERT_TRUE(
      base::WriteFileAtomic(bin.path() / "squeue",
                            "#!/bin/sh\n[ \"$*\" = '--noheader --jobs=7 --format=%S %l' ] && "
                            "[ $SLURM_TIME_FORMAT = %s ] && echo 1795204935 1:00:00\n",
                            0755)
          .ok());
  ::setenv("PATH", (bin.path().string() + ":" + path).c_str(), 1);
  ::setenv("TUTTI_GANG", "n7 10.0.0.7;", 1);
  ::setenv("SLURM_JOB_ID", "7", 1);
  const absl::Time end = absl::FromUnixSeconds(1795208535);
  EXPECT_EQ(ReasonOfStopRequest("/no/such/file", end).message(),
            "it has used up the time that it was given in Slurm");
  EXPECT_EQ(ReasonOfStopRequest("/no/such/file", end - absl::Minutes(5)).message(),
            "it was cancelled or preempted in Slurm");
  for (const char* name : {"TUTTI_GANG", "SLURM_JOB_ID"}) ::unsetenv(name);
  ::setenv("PATH", path.c_str(), 1);
}

TEST(SlurmPlacement, HasTheProcessorsThatSlurmHasGivenTheNode) {
  std::map<std::string, std::string> variables = {{"TUTTI_GANG", "n7 10.0.0.7;"},
                                                  {"SLURM_TASKS_PER_NODE", "1(x2)"},
                                                  {"SLURM_CPUS_PER_TASK", "2"},
                                                  {"SLURM_CPUS_ON_NODE", "4"}};
  EXPECT_EQ(AllocatedCores(variables, 64), 4);
  EXPECT_EQ(AllocatedCores(variables, 3), 3);  // bound more tightly
  variables["SLURM_TASKS_PER_NODE"] = "8(x2),7";
  EXPECT_EQ(AllocatedCores(variables, 64), 2);
  variables.erase("SLURM_CPUS_PER_TASK");
  EXPECT_EQ(AllocatedCores(variables, 64), 4);
  EXPECT_EQ(AllocatedCores({{"TUTTI_GANG", "n7 10.0.0.7;"}, {"SLURM_CPUS_ON_NODE", "x"}}, 64), 64);
  // A service in a shell that Slurm has started places its jobs by itself.
  EXPECT_EQ(AllocatedCores({{"SLURM_CPUS_ON_NODE", "4"}}, 64), 64);
}

TEST(SlurmMemory, IsWhatTheJobHasGotOfTheNode) {
  std::map<std::string, std::string> variables = {{"SLURM_MEM_PER_NODE", "1500"}};
  EXPECT_EQ(AllocatedMemory(variables), 0) << "a service in a shell that Slurm has started";
  variables["TUTTI_GANG"] = "n7 10.0.0.7;";
  EXPECT_EQ(AllocatedMemory(variables), int64_t{1500} << 20);
  variables = {{"TUTTI_GANG", "n7;"}, {"SLURM_MEM_PER_CPU", "1000"}, {"SLURM_CPUS_ON_NODE", "4"}};
  EXPECT_EQ(AllocatedMemory(variables), int64_t{4000} << 20);
  EXPECT_EQ(AllocatedMemory({{"TUTTI_GANG", "n7;"}, {"SLURM_MEM_PER_NODE", "0"}}), 0) << "all";
}

}  // namespace
}  // namespace tutti::launch
