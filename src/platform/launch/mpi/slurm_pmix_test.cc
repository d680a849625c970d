#include "platform/launch/mpi/slurm_pmix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/process/command.h"
#include "base/test_patience.h"
#include "platform/launch/mpi/open_mpi.h"

namespace tutti::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::IsSupersetOf;
using ::testing::Key;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

spec::LaunchPlan TwoByTwo(const std::string& directory = "/a/0") {
  spec::LaunchPlan plan;
  plan.nodes = {{"n1", "10.0.0.1", 0, 2}, {"n2", "10.0.0.2", 2, 2}};
  plan.directory = directory;
  return plan;
}

TEST(MayUsePmixTest, OnlyInABatchJobOfTuttisWithAsManyRanksOnEachNode) {
  const Variables own = {{"SLURM_JOB_ID", "17"}, {"TUTTI_GANG", "n1;n2;"}};
  spec::LaunchPlan plan = TwoByTwo();
  EXPECT_TRUE(MayUsePmix(plan, own));
  EXPECT_FALSE(MayUsePmix(plan, {{"SLURM_JOB_ID", "17"}}));  // a service in somebody's salloc
  EXPECT_FALSE(MayUsePmix(plan, {}));
  plan.environment_variables[kMpiVariable] = "mpirun";
  EXPECT_FALSE(MayUsePmix(plan, own));
  plan = TwoByTwo();
  plan.nodes[1].process_count = 1;  // srun's tasks would not lie as the ranks do
  EXPECT_FALSE(MayUsePmix(plan, own));
}

class FindSrunWithPmixTest : public ::testing::Test {
 protected:
  // With an srun that is this script.
  std::string Find(const std::string& script) {
    EXPECT_TRUE(base::WriteFileAtomic(srun_, "#!/bin/sh\n" + script, 0755).ok());
    return FindSrunWithPmix(own_, cancelled_);
  }
  const base::TemporaryDirectory folder_;
  const std::string srun_ = (folder_.path() / "srun").string();
  const Variables own_ = {{"PATH", folder_.path().string() + ":/usr/bin:/bin"}};
  std::atomic<bool> cancelled_ = false;
};

TEST_F(FindSrunWithPmixTest, AsksSrunWhatItOffers) {
  EXPECT_EQ(FindSrunWithPmix({{"PATH", folder_.path().string()}}, cancelled_), "");
  EXPECT_EQ(Find("printf 'MPI plugin types are...\\n\\tnone\\n\\tpmix\\nspecific pmix plugin "
                 "versions available: pmix_v4\\n'"),
            srun_);
  EXPECT_EQ(Find("printf 'srun: MPI types are...\\n\\tnone\\n\\tpmix\\n' >&2"), srun_);
  EXPECT_EQ(Find("printf 'MPI plugin types are...\\n\\tnone\\n\\tpmi2\\n'"), "");
  EXPECT_EQ(Find("echo 'srun: error: cannot load the plugin pmix' >&2; exit 1"), "");
}

TEST_F(FindSrunWithPmixTest, WaitsForNoSrunThatHangsWhenItIsCancelled) {
  cancelled_ = true;
  EXPECT_EQ(Find("exec sleep 600"), "");
}

TEST(SrunCommandTest, ItsTasksRunTheLauncherOfTheirNodeInItsScratchFolder) {
  const base::TemporaryDirectory folder;
  const auto allocation = folder.path() / "a blank, 'two' * and $HOME";
  const auto command = SrunCommand(TwoByTwo((allocation / "0").string()), "/usr/bin/srun");
  EXPECT_EQ(command.front(), "/usr/bin/srun");
  EXPECT_THAT(command, IsSupersetOf({"--mpi=pmix", "--overlap", "--wait=0", "--kill-on-bad-exit=0",
                                     "--nodes=2", "--ntasks=4", "--ntasks-per-node=2"}));
  base::ChildOptions task;
  task.arguments = {std::find(command.begin(), command.end(), "/bin/sh"), command.end()};
  for (const std::string node : {"0", "1"}) {
    const auto scratch = allocation / node / "scratch";
    ASSERT_TRUE(base::MakeDirectories(scratch).ok());
    const std::string program = "#!/bin/sh\necho $1 at $TUTTI_LAUNCHER_SOCKET in \"$PWD\"\n";
    ASSERT_TRUE(base::WriteFileAtomic(scratch / kLauncherLink, program, 0755).ok());
    task.environment = SrunEnvironment({});
    task.environment["SLURM_NODEID"] = node;
    const auto ran =
        base::RunCommand(task, "", base::Deadline::After(base::Patient(absl::Seconds(20))));
    ASSERT_TRUE(ran.ok()) << ran.status();
    EXPECT_EQ(ran->out, "launch-pmix-task at socket in " + scratch.string() + "\n") << ran->err;
  }
}

TEST(WordsOfSrunTest, TellWhetherAStepWasMadeAndForWhomItEnded) {
  EXPECT_TRUE(
      FoundNoController("srun: error: Unable to confirm allocation for job 11: Unable to "
                        "contact slurm controller (connect failure)"));
  EXPECT_FALSE(
      FoundNoController("srun: error: Task launch for StepId=1.2 failed on node n2: "
                        "Socket timed out on send/recv operation"));
  EXPECT_FALSE(
      FoundNoController("srun: error: Unable to create step for job 3: Requested node "
                        "configuration is not available"));
  for (const char* why : {"Job is pending execution", "Invalid job id specified"}) {
    const std::string said =
        absl::StrCat("srun: error: Unable to confirm allocation for job 11: ", why);
    EXPECT_TRUE(FoundNoController(said));  // so srun is called again
    EXPECT_TRUE(FoundNoRunningJob(said));
  }
  EXPECT_FALSE(
      FoundNoRunningJob("srun: error: Unable to confirm allocation for job 11: Unable to "
                        "contact slurm controller (connect failure)"));
  EXPECT_TRUE(WasNotLaunched("srun: error: Task launch for StepId=1.2 failed on node n2: Zero"));
  EXPECT_TRUE(WasNotLaunched("srun: error: Unable to create step for job 3: Job/step already"));
  EXPECT_FALSE(WasNotLaunched("srun: error: n2: tasks 2-3: Exited with exit code 1"));
  EXPECT_EQ(RankThatLeftPmix("status = -61, source = [slurm.pmix.1.1:3]"), 3);
  EXPECT_EQ(RankThatLeftPmix("status = -61, source = [slurm.pmix.1.1:"), -1);
  EXPECT_EQ(RankThatLeftPmix("srun: error: n2: tasks 2-3: Killed"), -1);
}

TEST(SrunEnvironmentTest, HasTheJobAndNothingOfTheLaunchersStep) {
  EXPECT_THAT(SrunEnvironment({{"PATH", "/usr/bin"},
                               {"SLURM_JOB_ID", "17"},
                               {"SLURM_CONF", "/etc/slurm.conf"},
                               {"SLURM_PMIX_TIMEOUT", "60"},
                               {"SLURM_STEP_NODELIST", "n1"},
                               {"SLURM_MPI_TYPE", "none"},
                               {"SRUN_CPUS_PER_TASK", "4"},
                               {"PMIX_RANK", "0"}}),
              ElementsAre(Key("PATH"), Key("SLURM_CONF"), Key("SLURM_JOB_ID"),
                          Pair("SLURM_PMIX_FENCE", "ring"), Key("SLURM_PMIX_TIMEOUT"),
                          Key("TUTTI_LAUNCHER_SOCKET")));
  EXPECT_EQ(SrunEnvironment({{"SLURM_PMIX_FENCE", "tree"}})["SLURM_PMIX_FENCE"], "tree")
      << "as the site says";
}

TEST(PlaceInTest, IsTheRanksNumbersAndItsStepAndNotWhatTheTaskMayUse) {
  EXPECT_THAT(PmixVariablesOf({{"PATH", "/usr/bin"},
                               {"PMIX_NAMESPACE", "slurm.pmix.17.1"},
                               {"PMIX_RANK", "3"},
                               {"SLURM_CPUS_ON_NODE", "1"},
                               {"SLURM_JOB_ID", "17"},
                               {"SLURM_LOCALID", "1"},
                               {"SLURM_NODEID", "1"},
                               {"SLURM_NPROCS", "4"},
                               {"SLURM_NTASKS", "4"},
                               {"SLURM_NTASKS_PER_NODE", "2"},
                               {"SLURM_PMIXP_ABORT_AGENT_PORT", "4011"},
                               {"SLURM_PROCID", "3"},
                               {"SLURM_STEP_ID", "1"}}),
              UnorderedElementsAre(Key("PMIX_NAMESPACE"), Key("PMIX_RANK"), Key("SLURM_LOCALID"),
                                   Key("SLURM_NODEID"), Key("SLURM_NPROCS"), Key("SLURM_NTASKS"),
                                   Key("SLURM_PROCID"), Key("SLURM_PMIXP_ABORT_AGENT_PORT"),
                                   Key("SLURM_STEP_ID")));
}

}  // namespace
}  // namespace tutti::launch
