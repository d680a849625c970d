#include "platform/launch/mpi/open_mpi.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace tutti::launch {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;
using ::testing::StartsWith;

spec::LaunchPlan TwoByTwoMpi() {
  spec::LaunchPlan plan;
  plan.nodes = {{"n1", "127.77.0.1", 0, 2}, {"n2", "127.77.0.2", 2, 2}};
  plan.distribution.type = "mpi";
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
  plan.distribution.type = "pytorch";
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

TEST(FindOpenMpiTest, TakesTheFirstInPathOfWhichVersionEver) {
  const base::TemporaryDirectory older, newer, half;
  for (const char* name : {"orterun", "orted"}) {
    ASSERT_TRUE(base::WriteFileAtomic(older.path() / name, "", 0755).ok());
  }
  for (const char* name : {"prterun", "prted"}) {
    ASSERT_TRUE(base::WriteFileAtomic(newer.path() / name, "", 0755).ok());
  }
  ASSERT_TRUE(base::WriteFileAtomic(half.path() / "prterun", "", 0755).ok());
  spec::LaunchPlan plan = TwoByTwoMpi();
  plan.nodes = {{"n1", "127.77.0.1", 0, 2}};
  const auto found = [&](const base::TemporaryDirectory& first,
                         const base::TemporaryDirectory& second) {
    const std::string path = absl::StrCat(first.path().string(), ":", second.path().string());
    return FindOpenMpi(plan, {{"PATH", path}});
  };
  EXPECT_EQ(found(older, newer), (older.path() / "orterun").string());
  EXPECT_EQ(found(newer, older), (newer.path() / "prterun").string());
  EXPECT_EQ(found(half, older), (older.path() / "orterun").string());
}

TEST(FindOpenMpiTest, AnotherMpisStarterBeforeItStandsForItsWorld) {
  const base::TemporaryDirectory hydra, open_mpi;
  ASSERT_TRUE(base::WriteFileAtomic(hydra.path() / "mpiexec.hydra", "", 0755).ok());
  for (const char* name : {"orterun", "orted"}) {
    ASSERT_TRUE(base::WriteFileAtomic(open_mpi.path() / name, "", 0755).ok());
  }
  spec::LaunchPlan plan = TwoByTwoMpi();
  plan.nodes = {{"n1", "127.77.0.1", 0, 2}};
  const std::string both[] = {hydra.path().string(), open_mpi.path().string()};
  EXPECT_EQ(FindOpenMpi(plan, {{"PATH", absl::StrCat(both[0], ":", both[1])}}), "");
  const Variables open_mpi_first = {{"PATH", absl::StrCat(both[1], ":", both[0])}};
  EXPECT_NE(FindOpenMpi(plan, open_mpi_first), "");
  plan.environment_variables[kMpiVariable] = "pmi";
  EXPECT_EQ(FindOpenMpi(plan, open_mpi_first), "");
  plan.environment_variables.clear();
  plan.environment.image.reference = "a.example/b:1";
  EXPECT_EQ(FindOpenMpi(plan, open_mpi_first), "") << "it is not the image's";
}

TEST(WhyNoOpenMpiTest, NamesWhatStandsInItsPlace) {
  const base::TemporaryDirectory hydra, open_mpi;
  const std::string other = (hydra.path() / "mpiexec.hydra").string();
  ASSERT_TRUE(base::WriteFileAtomic(other, "", 0755).ok());
  for (const char* name : {"orterun", "orted"}) {
    ASSERT_TRUE(base::WriteFileAtomic(open_mpi.path() / name, "", 0755).ok());
  }
  spec::LaunchPlan plan = TwoByTwoMpi();
  plan.nodes = {{"n1", "127.77.0.1", 0, 2}};
  const auto why = [&](const std::string& path) { return WhyNoOpenMpi(plan, {{"PATH", path}}); };
  const std::string both = absl::StrCat(hydra.path().string(), ":", open_mpi.path().string());
  EXPECT_THAT(why(both),
              StartsWith("the first mpirun in PATH is MPICH's or Intel MPI's (" + other));
  EXPECT_THAT(why(both), Not(HasSubstr("apt-get")));
  EXPECT_THAT(why(open_mpi.path().string()),
              StartsWith("not every node has an mpirun of Open MPI"));
  EXPECT_THAT(why("/no/such"), StartsWith("PATH has no mpirun of Open MPI"));
  EXPECT_THAT(why("/no/such"), HasSubstr("apt-get install openmpi-bin"));
}

TEST(MpirunCommandTest, PlacesTheRanksAsThePlanDoes) {
  for (const auto& [mpirun, agent] : {std::pair{"/usr/bin/orterun", "plm_rsh_agent"},
                                      std::pair{"/usr/bin/prterun", "plm_ssh_agent"}}) {
    const auto command = MpirunCommand(TwoByTwoMpi(), mpirun);
    EXPECT_EQ(command.front(), mpirun);
    EXPECT_THAT(command, IsSupersetOf({agent, "tutti-launcher launch-agent", "--host", "n1:2,n2:2",
                                       "-np", "4", "slot", "--wdir", "/"}));
    EXPECT_EQ(command[command.size() - 2], "tutti-launcher");
    EXPECT_EQ(command.back(), "launch-rank");
  }
}

// The other's options end a starter with its usage.
TEST(MpirunCommandTest, SpeaksToEachVersionInItsOwnOptions) {
  const auto older = MpirunCommand(TwoByTwoMpi(), "/usr/bin/orterun");
  EXPECT_THAT(older, Contains("oob_tcp_if_include"));
  EXPECT_THAT(older, Not(Contains("--prtemca")));
  const auto newer = MpirunCommand(TwoByTwoMpi(), "/usr/bin/prterun");
  EXPECT_THAT(newer, IsSupersetOf({"--personality", "ompi", "btl_tcp_if_include"}));
  EXPECT_THAT(newer, Not(Contains("oob_tcp_if_include")));
}

TEST(StarterEnvironmentTest, SaysNotWhichRankItIs) {
  NodeFacts facts;
  facts.own = {{"PATH", "/usr/bin"}, {"SLURM_JOB_ID", "3"}, {"OMPI_MCA_btl", "tcp,self"}};
  const Variables variables =
      StarterEnvironment(TwoByTwoMpi(), facts, "/usr/bin/orterun", "/s/socket", "/s");
  for (const char* name :
       {"RANK", "LOCAL_RANK", "OMPI_COMM_WORLD_RANK", "HOROVOD_RANK", "SLURM_JOB_ID"}) {
    EXPECT_THAT(variables, Not(Contains(Key(name))));
  }
  EXPECT_EQ(variables.at("OMPI_MCA_btl"), "tcp,self");
  EXPECT_EQ(variables.at("TUTTI_LAUNCHER_SOCKET"), "/s/socket");
  EXPECT_EQ(variables.at("PATH"), "/s:/usr/bin");
  EXPECT_THAT(variables, Not(Contains(Key("OPAL_PREFIX"))));
}

// A wheel's prterun looks for its daemon and its files where it was built for.
TEST(StarterEnvironmentTest, SaysWhereOpenMpiOfAPythonEnvironmentLies) {
  const base::TemporaryDirectory shared, job;
  ASSERT_TRUE(base::MakeDirectories(shared.path() / "bin").ok());
  ASSERT_TRUE(base::WriteFileAtomic(shared.path() / "bin/prterun", "", 0755).ok());
  std::filesystem::create_symlink(shared.path() / "bin/prterun", job.path() / "prterun");
  const auto variables = [&](const spec::LaunchPlan& plan) {
    return StarterEnvironment(plan, {}, (job.path() / "prterun").string(), "/s/socket", "/s");
  };
  spec::LaunchPlan plan = TwoByTwoMpi();
  EXPECT_THAT(variables(plan), Not(Contains(Key("PRTE_PREFIX"))));
  ASSERT_TRUE(base::WriteFileAtomic(shared.path() / "pyvenv.cfg", "").ok());
  const std::string prefix = std::filesystem::canonical(shared.path()).string();
  for (const char* name : {"OPAL_PREFIX", "PMIX_PREFIX", "PRTE_PREFIX"}) {
    EXPECT_THAT(variables(plan), Contains(Pair(name, prefix)));
  }
  plan.environment_variables["OPAL_PREFIX"] = "/opt/mine";
  EXPECT_THAT(variables(plan), Contains(Pair("OPAL_PREFIX", "/opt/mine")));
}

}  // namespace
}  // namespace tutti::launch
