// Covers: node_processes.cc, hooks/mpi_hook.cc, mpi/mpi_agreement.cc, ranks/rank_table.cc.
#include <sys/mount.h>

#include <cstdlib>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "base/test_patience.h"
#include "platform/launch/environment/process_environment.h"
#include "platform/launch/launcher_fixture.h"
#include "platform/launch/mpi/gang_link.h"

namespace tutti::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// In a batch job of one node, whose srun is a script.
class LauncherInSlurm : public LauncherFixture {
 protected:
  LauncherInSlurm() {
    for (const auto& [name, value] : variables_) ::setenv(name.c_str(), value.c_str(), 1);
  }
  ~LauncherInSlurm() override {
    ::setenv("PATH", path_.c_str(), 1);
    variables_.erase("PATH");
    for (const auto& [name, value] : variables_) ::unsetenv(name.c_str());
  }
  // `step`: what srun does when it is not asked what it offers.
  void WriteSrun(const std::string& step) {
    const std::string script =
        "#!/bin/sh\n[ $1 != --mpi=list ] || { echo ' pmix'; exit; }\n" + step;
    ASSERT_TRUE(base::WriteFileAtomic(folder.path() / "srun", script, 0755).ok());
  }
  spec::LaunchPlan MpiPlan(std::string command) const {
    spec::LaunchPlan plan = Plan(std::move(command), 2);
    plan.distribution.type = "mpi";
    return plan;
  }

  const std::string path_ = std::getenv("PATH");
  Variables variables_ = {{"TUTTI_GANG", "n1;"},
                          {"SLURM_JOB_ID", "17"},
                          {"PATH", folder.path().string() + ":" + path_},
                          {kRankStartLimitVariable, "60000"}};
};

TEST_F(LauncherInSlurm, StartsEachRankForItsPmixTask) {
  WriteSrun(R"(while [ "$1" != /bin/sh ]; do shift; done
for rank in 1 0; do
  SLURM_NODEID=allocation SLURM_PROCID=$rank SLURM_CPUS_ON_NODE=9 PMIX_RANK=$rank "$@" >/dev/null &
  tasks="$tasks $!"
done
for task in $tasks; do wait $task; echo ended with $? >&2; done
)");
  EXPECT_TRUE(
      Run(MpiPlan("echo $RANK $PMIX_RANK $SLURM_PROCID $SLURM_CPUS_ON_NODE; exit $RANK")).ok());
  EXPECT_EQ(service.Output(0, "stdout"), "0 0 0\n");
  EXPECT_EQ(service.Output(1, "stdout"), "1 1 1\n");
  EXPECT_EQ(service.Output(0, "mpirun"), "ended with 1\nended with 0\n");
  EXPECT_EQ(service.Output(0, "stderr"), "");
  EXPECT_EQ(service.Events().back()["ok"], true);
}

// With room for ever more files, until its ranks can begin.
TEST_F(LauncherInSlurm, AFullSharedDiskBeforeItsRanksBeginIsNoFaultOfTheJob) {
  const std::filesystem::path shared = folder.path() / "shared", began = folder.path() / "began";
  ASSERT_TRUE(base::MakeDirectories(shared).ok());
  WriteSrun(absl::StrCat("touch ", began.native(), "; exit 3\n"));
  spec::LaunchPlan plan = MpiPlan("true");
  plan.shared_folder = shared.native();
  plan.directory = (shared / "a").native();
  int once_prepared = 0;
  for (int files = 4; files < 100 && !std::filesystem::exists(began); ++files) {
    const std::string room = absl::StrCat("nr_inodes=", files);
    if (::mount("tmpfs", shared.c_str(), "tmpfs", 0, room.c_str()) != 0) {
      GTEST_SKIP() << "may not mount a small tmpfs";
    }
    const absl::Cleanup unmount = [&] { ::umount2(shared.c_str(), MNT_DETACH); };
    const ServiceDouble told(folder.path() / absl::StrCat("service-", files, ".json"));
    plan.service_file = (folder.path() / absl::StrCat("service-", files, ".json")).native();
    Run(plan);
    const auto ends = told.Events("finished");
    if (ends.empty() || std::filesystem::exists(began)) continue;
    EXPECT_EQ(ends.front().value("shared_disk_full", false), true) << room << ": " << ends.front();
    once_prepared += told.Events("prepared").empty() ? 0 : 1;
  }
  EXPECT_TRUE(std::filesystem::exists(began));
  EXPECT_GT(once_prepared, 0);
}

TEST_F(LauncherInSlurm, ARankThatFailsSinceItsPmixTaskHasGoneIsNoCause) {
  const std::string at = folder.path().string();
  WriteSrun(
      "while [ \"$1\" != /bin/sh ]; do shift; done\n"
      "SLURM_NODEID=allocation PMIX_RANK=0 \"$@\" & first=$!\n"
      "SLURM_NODEID=allocation PMIX_RANK=1 \"$@\" &\n"
      "until [ -e " +
      at +
      "/up ]; do sleep 0.01; done\n"
      "kill -9 $first; wait $first; touch " +
      at + "/gone; wait\n");
  EXPECT_TRUE(Run(MpiPlan("[ $RANK = 1 ] || { touch " + at + "/up; until [ -e " + at +
                          "/gone ]; do sleep 0.01; done; exit 195; }"))
                  .ok());
  int ends = 0;
  for (const auto& event : service.Events()) {
    if (event["kind"] != "exited") continue;
    ++ends;
    EXPECT_EQ(event["code"], event["rank"] == 0 ? 195 : 0);
    EXPECT_EQ(event["stopped"], event["rank"] == 0) << event;
  }
  EXPECT_EQ(ends, 2);
  EXPECT_TRUE(service.Events("unlaunched").empty());
}

TEST_F(LauncherInSlurm, ARankThatSlurmToldBeforeTheLauncherHasNotFailed) {
  EXPECT_TRUE(Run(Plan("[ $RANK = 1 ] || exec sleep 60; "
                       "(sleep 0.05; kill -TERM $PPID) >/dev/null 2>&1 & exit 3",
                       2))
                  .ok());
  const std::vector<nlohmann::json> exits = service.Events("exited");
  ASSERT_EQ(exits.size(), 2u);
  for (const auto& exit : exits) EXPECT_EQ(exit["stopped"], true) << exit;
  EXPECT_THAT(service.Events("finished").at(0)["reason"], HasSubstr("in Slurm"));
  EXPECT_EQ(service.Events("finished").at(0)["told"], true);
}

TEST_F(LauncherInSlurm, CallsSrunAgainThatFoundNoController) {
  WriteSrun("cd " + folder.path().string() + R"(; echo called >>calls
if [ $(wc -l <calls) -lt 3 ]; then
  echo 'srun: error: Unable to confirm allocation for job 17: Unable to contact slurm controller (connect failure)' >&2
  exit 1
fi
while [ "$1" != /bin/sh ]; do shift; done
for rank in 0 1; do SLURM_NODEID=allocation PMIX_RANK=$rank "$@" & done; wait
)");
  EXPECT_TRUE(Run(MpiPlan("echo $PMIX_RANK")).ok());
  EXPECT_EQ(service.Output(1, "stdout"), "1\n");
  EXPECT_EQ(service.Events().back()["ok"], true) << service.Events().back();
  EXPECT_EQ(base::ReadFile(folder.path() / "calls").value(), "called\ncalled\ncalled\n");
}

TEST_F(LauncherInSlurm, WhoseTimeIsUpBeforeItBeginsSaysSo) {
  const int64_t end = absl::ToUnixSeconds(absl::Now() + absl::Seconds(50));
  ::setenv("SLURM_JOB_END_TIME", absl::StrCat(end).c_str(), 1);
  ::setenv("TUTTI_GANG", "n1 127.77.0.1;n2 127.77.0.2;", 1);
  service.HoldGo(true);
  base::ChildProcess launcher = Launch(OneOfTwo("true"));
  ::unsetenv("SLURM_JOB_END_TIME");
  ASSERT_TRUE(service.AwaitEvent("prepared"));
  ::kill(launcher.pid(), SIGTERM);
  WaitFor(launcher);
  ASSERT_THAT(Kinds(), ElementsAre("preparing", "prepared", "finished"));
  EXPECT_EQ(service.Events().back()["reason"],
            "it has used up the time that it was given in Slurm");
}

TEST_F(LauncherInSlurm, WhatSlurmEndsThatItHadTakenBackWasNotLaunched) {
  WriteSrun("cd " + folder.path().string() + R"(
[ ! -e called ] || { kill -TERM $PPID; sleep 600; }
touch called
echo 'srun: error: Unable to confirm allocation for job 17: Job is pending execution' >&2
exit 1
)");
  EXPECT_TRUE(Run(MpiPlan("true")).ok());
  EXPECT_EQ(service.Events().back()["reason"],
            "Slurm ended it before its ranks had begun: srun: error: Unable to confirm allocation "
            "for job 17: Job is pending execution");
  EXPECT_FALSE(service.Events().back().contains("told"));
  EXPECT_EQ(service.Events("unlaunched").size(), 1);
}

TEST_F(LauncherInSlurm, NamesTheRankForWhichSlurmsPmixEndsTheOthers) {
  WriteSrun("cd " + folder.path().string() + R"(
while [ "$1" != /bin/sh ]; do shift; done
for rank in 0 1; do SLURM_NODEID=allocation PMIX_RANK=$rank "$@" & done
until [ -e up-0 ] && [ -e up-1 ]; do sleep 0.01; done
echo ' slurmstepd: error:  mpi/pmix_v4: _errhandler: n2 [0]: pmixp_client_v2.c:211: Error handler invoked: status = -61, source = [slurm.pmix.17.1:1]' >&2
exit 137
)");
  const std::string up = (folder.path() / "up-$RANK").string();
  EXPECT_TRUE(Run(MpiPlan("touch " + up + "; exec sleep 600")).ok());
  EXPECT_EQ(service.Events().back()["rank"], 1);
  EXPECT_EQ(service.Events().back()["reason"],
            "left MPI without MPI_Finalize, for which Slurm's PMIx ends the others");
  EXPECT_TRUE(service.Events("unlaunched").empty());
  EXPECT_TRUE(NoProcessLeft());
}

TEST_F(LauncherInSlurm, ANodeWhoseRanksNobodyBringsAnyMoreHasNotEndedWell) {
  spec::LaunchPlan plan = MpiPlan("true");
  plan.start_port = 6104;
  ::setenv("TUTTI_GANG", "n1 127.77.0.41;n2 127.77.0.42;", 1);
  plan.nodes = {{"n1", "127.77.0.41", 0, 2}, {"n2", "127.77.0.42", 2, 2}};
  spec::LaunchPlan first = plan;
  plan.node_index = 1;
  std::thread killed([&] {  // once all have met
    const std::atomic<bool> cancelled = false;
    const base::Deadline deadline = base::Deadline::After(base::Patient(absl::Seconds(20)));
    EXPECT_TRUE(GangLink::Meet(first, MpiWay::kPmix, 0, cancelled, deadline).ok());
  });
  EXPECT_TRUE(Run(plan).ok());
  killed.join();
  EXPECT_EQ(service.Events().back()["ok"], false);
  EXPECT_EQ(service.Events().back()["reason"],
            "the launcher of node n1 has ended, which was to begin its ranks");
  EXPECT_EQ(service.Events("unlaunched").size(), 1);
}

TEST_F(LauncherInSlurm, AnSrunThatEndsWellWithoutItsRanksHasNotEndedWell) {
  WriteSrun("exit 0\n");
  EXPECT_TRUE(Run(MpiPlan("true")).ok());
  EXPECT_EQ(service.Events().back()["ok"], false);
  EXPECT_EQ(service.Events().back()["reason"], "srun has ended without a place for every rank");
  EXPECT_EQ(service.Events("unlaunched").size(), 1);
}

TEST_F(LauncherInSlurm, TasksThatSlurmDoesNotLaunchAreNoFaultOfTheJobs) {
  WriteSrun(R"(while [ "$1" != /bin/sh ]; do shift; done
SLURM_NODEID=allocation PMIX_RANK=0 "$@" &
echo 'srun: error: Task launch for StepId=7.1 failed on node n2: Communication connection failure' >&2
exit 1
)");
  EXPECT_TRUE(Run(MpiPlan("sleep 600")).ok());
  EXPECT_EQ(service.Events().back()["reason"],
            "srun ended with exit code 1: srun: error: Task launch for StepId=7.1 failed on node "
            "n2: Communication connection failure");
  EXPECT_EQ(service.Events("unlaunched").size(), 1);
  EXPECT_TRUE(NoProcessLeft());
}

TEST_F(LauncherInSlurm, SaysThatSlurmStartsNoPmixTask) {
  ::setenv(kRankStartLimitVariable, "300", 1);
  WriteSrun("echo 'srun: Job step creation temporarily disabled' >&2\nexec sleep 600\n");
  EXPECT_TRUE(Run(MpiPlan("true")).ok());
  EXPECT_EQ(service.Events().back()["reason"],
            "Slurm gave its ranks no place in PMIx (srun --mpi=pmix) within 300ms: "
            "srun: Job step creation temporarily disabled");
  EXPECT_EQ(service.Events("unlaunched").size(), 1);
  EXPECT_TRUE(NoProcessLeft());
}

}  // namespace
}  // namespace tutti::launch
