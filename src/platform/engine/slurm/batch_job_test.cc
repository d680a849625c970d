#include "platform/engine/slurm/batch_job.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/process/child_process.h"
#include "base/test_patience.h"
#include "platform/engine/slurm/slurm_engine_test_support.h"

namespace tutti::engine {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(SlurmEngineTest, AJobsSettingsStandOverItsComputes) {
  Allocation gang = Gang("a.1", 2);
  gang.priority = spec::Priority::kLow;
  gang.slurm.partition = "gpu";
  gang.slurm.qos = "high";
  gang.slurm.exclusive = true;
  gang.slurm.options = {"--licenses=x"};
  ASSERT_TRUE(engine_->Start(gang).ok());
  AwaitRunning("a.1");
  const std::vector<std::string> command = slurm_.last_sbatch();
  for (const char* option : {"--partition=gpu", "--qos=high", "--exclusive", "--licenses=x",
                             "--mem=1G", "--nodes=2", "--nice=10000", "--no-requeue"}) {
    EXPECT_THAT(command, Contains(option));
  }
  EXPECT_THAT(command, Not(Contains("--partition=main")));
}

TEST_F(SlurmEngineTest, APriorityHasTheQosThatTheComputeGivesIt) {
  const auto qos_of = [&](const std::string& id, spec::Priority priority, const std::string& own) {
    Allocation gang = Gang(id);
    gang.priority = priority;
    gang.slurm.qos = own;
    EXPECT_TRUE(engine_->Start(gang).ok());
    AwaitRunning(id);
    return slurm_.last_sbatch();
  };
  EXPECT_THAT(qos_of("a.1", spec::Priority::kNormal, ""), Contains("--qos=standard"));
  EXPECT_THAT(qos_of("b.1", spec::Priority::kHigh, ""), Contains("--qos=urgent"));
  EXPECT_THAT(qos_of("c.1", spec::Priority::kHigh, "mine"), Contains("--qos=mine"));
  EXPECT_THAT(qos_of("d.1", spec::Priority::kHigh, "none"), Not(Contains(HasSubstr("--qos"))));
}

TEST_F(SlurmEngineTest, LaunchersHaveAllOfExclusiveNodesUnlessANumberIsSaid) {
  Allocation gang = Gang("a.1", 2);
  EXPECT_THAT(SrunScript(gang.slurm, gang), HasSubstr("--cpus-per-task="));
  gang.slurm.exclusive = true;
  EXPECT_THAT(SrunScript(gang.slurm, gang), Not(HasSubstr("--cpus-per-task=")));
  ASSERT_TRUE(engine_->Start(gang).ok());
  AwaitRunning("a.1");
  EXPECT_THAT(slurm_.last_sbatch(), Contains(HasSubstr("--mincpus=")));
  gang.slurm.cpus_per_node = 3;
  EXPECT_THAT(SrunScript(gang.slurm, gang), HasSubstr("--cpus-per-task=3 "));
}

TEST(SbatchCommand, SaysWhatTheJobAndItsComputeAsk) {
  struct Case {
    const char* what;
    std::function<void(spec::SlurmSettings& compute, Allocation& gang)> set;
    std::vector<std::string> says, says_not;
  };
  const std::vector<Case> cases = {
      {"nothing", [](auto&, auto&) {}, {"--signal=B:TERM@60", "--nice=100"}, {"--time="}},
      {"limits.timeout: a minute, the grace and ten minutes",
       [](auto&, auto& gang) {
         gang.plan.timeout_seconds = 60;
         gang.plan.grace_seconds = 30;
       },
       {"--time=12"},
       {}},
      {"limits.timeout over the compute's time",
       [](auto& compute, auto& gang) {
         compute.time = "1-00";
         gang.plan.timeout_seconds = 60;
         gang.plan.grace_seconds = 0;
       },
       {"--time=11"},
       {"--time=1-00"}},
      {"the job's own time over its limits.timeout",
       [](auto&, auto& gang) {
         gang.slurm.time = "00:20:00";
         gang.plan.timeout_seconds = 1200;
       },
       {"--time=00:20:00"},
       {"--time=31"}},
      {"the compute's time",
       [](auto& compute, auto&) { compute.time = "2:00:00"; },
       {"--time=2:00:00"},
       {}},
      {"a high priority",
       [](auto&, auto& gang) { gang.priority = spec::Priority::kHigh; },
       {"--nice=0"},
       {}},
      {"a low priority",
       [](auto&, auto& gang) { gang.priority = spec::Priority::kLow; },
       {"--nice=10000"},
       {}},
      {"the compute's words",
       [](auto& compute, auto&) {
         compute.account = "mine";
         compute.gres = "gpu:a100:4";
         compute.reservation = "night";
         compute.constraint = "[rack1|rack2]";
       },
       {"--account=mine", "--gres=gpu:a100:4", "--reservation=night", "--constraint=[rack1|rack2]"},
       {}},
      {"the job's words over them",
       [](auto& compute, auto& gang) {
         compute.account = "mine";
         compute.gres = "gpu:4";
         gang.slurm.account = "ours";
         gang.slurm.gres = "gpu:8";
       },
       {"--account=ours", "--gres=gpu:8"},
       {"--account=mine", "--gres=gpu:4"}},
      {"memory by the processor in place of the compute's by the node",
       [](auto& compute, auto& gang) {
         compute.memory = "4G";
         gang.slurm.options = {"--mem-per-cpu=1G"};
       },
       {"--mem-per-cpu=1G"},
       {"--mem=4G"}},
      {"where memory is to lie beside how much",
       [](auto& compute, auto&) {
         compute.memory = "4G";
         compute.options = {"--mem-bind=local"};
       },
       {"--mem-bind=local", "--mem=4G"},
       {}},
      {"nothing of what the compute asks",
       [](auto& compute, auto& gang) {
         compute.gres = "gpu:4";
         compute.qos = "high";
         compute.time = "1:00:00";
         compute.exclusive = true;
         gang.slurm.gres = gang.slurm.qos = gang.slurm.time = "none";
         gang.slurm.exclusive = false;
       },
       {"--cpus-per-task=1"},
       {"--gres", "--qos", "--time", "--exclusive"}},
      {"two nodes, whose launchers Slurm signals itself",
       [](auto&, auto& gang) { gang.nodes.push_back({.node_index = 1}); },
       {"--signal=TERM@60", "--nodes=2", "--ntasks-per-node=1"},
       {}},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.what);
    spec::SlurmSettings compute;
    Allocation gang{.id = "a.1"};
    gang.nodes.resize(1);
    one.set(compute, gang);
    const std::vector<std::string> command =
        SbatchCommand(spec::Over(compute, gang.slurm), gang, {.comment = "c", .folder = "/f/a.1"});
    for (const std::string& word : one.says) EXPECT_THAT(command, Contains(word));
    for (const std::string& word : one.says_not) {
      EXPECT_THAT(command, Not(Contains(testing::StartsWith(word))));
    }
  }
}

TEST_F(SlurmEngineTest, NodesToAvoidAreExcludedBesideThoseThatTheJobExcludes) {
  Allocation gang{.id = "a.1"};
  gang.nodes.resize(1);
  gang.avoid = {"n2", "n3"};
  const BatchJob job{.comment = "c", .folder = "/f/a.1"};
  EXPECT_THAT(SbatchCommand({}, gang, job), Contains("--exclude=n2,n3"));
  gang.slurm.options = {"--exclude=n9", "--licenses=x"};
  const auto both = SbatchCommand(gang.slurm, gang, job);
  EXPECT_THAT(both, Contains("--exclude=n9,n2,n3"));
  EXPECT_THAT(both, Not(Contains("--exclude=n9")));
}

TEST_F(SlurmEngineTest, WhereSlurmHasTooFewOthersTheyAreTakenAfterAll) {
  slurm_.SetFault("sbatch", SlurmCommandsFake::Fault::kRefuse);
  Allocation gang = Gang("a.1");
  gang.avoid = {"n2"};
  ASSERT_TRUE(engine_->Start(gang).ok());
  EXPECT_THAT(AwaitEnd("a.1").reason, HasSubstr("Slurm refused it: "));
  EXPECT_EQ(listening_.calls("sbatch"), 2);
  EXPECT_THAT(listening_.last("sbatch"), Not(Contains(HasSubstr("--exclude"))));
}

TEST_F(SlurmEngineTest, AScriptsLinesStandForTheJobsOwnShape) {
  Allocation gang = Gang("a.1");
  gang.slurm.shape = {"--nodes=2", "--ntasks=4", "--mem-per-cpu=1G"};
  ASSERT_TRUE(engine_->Start(gang).ok());
  EXPECT_EQ(AwaitRunning("a.1").nodes.size(), 1U);  // of its launcher
  const std::vector<std::string> command = slurm_.last_sbatch();
  EXPECT_THAT(command, Contains("--ntasks=4"));
  EXPECT_THAT(command, Not(Contains(HasSubstr("--cpus-per-task"))));
  EXPECT_THAT(command, Not(Contains("--mem=1G")));  // the two exclude each other
}

TEST_F(SlurmEngineTest, TheServicesTokenForSlurmAndItsClustersAreNotTheJobs) {
  const auto first_line_of = [&](const std::string& id) {
    EXPECT_TRUE(engine_->Start(Gang(id, 2)).ok());
    const std::vector<std::string> lines = absl::StrSplit(Script(id), '\n');
    return *std::find_if(lines.begin(), lines.end(),
                         [](const std::string& line) { return !absl::StartsWith(line, "#"); });
  };
  EXPECT_EQ(first_line_of("a.1"), "unset SLURM_JWT SLURM_CLUSTERS");
  OpenUnshared();
  EXPECT_EQ(first_line_of("b.1"), "unset SLURM_JWT SLURM_CLUSTERS");
}

// Runs batch scripts on this machine, with what stands for a launcher: the first is killed.
class RunBatchScriptTest : public SlurmEngineTest {
 protected:
  RunBatchScriptTest() {
    Program("srun", "while [ $1 != bash ]; do shift; done; exec \"$@\"");
    Program("scontrol", "exit 0");
    Program("launch", "echo x >>${0%/*}/runs; [ $(wc -l <${0%/*}/runs) = 2 ] || kill -9 $$");
  }

  void Program(const std::string& name, const std::string& text) {
    EXPECT_TRUE(
        base::WriteFileAtomic(bin_.path() / name, "#!/bin/bash\n" + text + "\n", 0755).ok());
  }

  // Runs the script of such a job; returns its exit code.
  int RunScript(int nodes, const std::string& image = "") {
    std::filesystem::remove(bin_.path() / "runs");
    Allocation gang = Gang("a.1", nodes);
    gang.plan.environment.image.reference = image;
    const BatchJob job{.folder = bin_.path(),
                       .program = (bin_.path() / "launch").native(),
                       .remover = (bin_.path() / "remove").native()};
    base::ChildOptions options{.arguments = {"/bin/bash", "-c", BatchScript({}, gang, job)},
                               .environment = base::CurrentEnvironment()};
    options.environment["PATH"] = bin_.path().native() + ":/usr/bin:/bin";
    options.environment["SLURM_NODEID"] = "0";
    auto child = base::ChildProcess::Start(options);
    EXPECT_TRUE(child.ok());
    const auto ended = child->Wait(base::Deadline::After(base::Patient(absl::Seconds(20))));
    EXPECT_TRUE(ended.ok());
    return ended.value_or(base::ExitStatus{.code = -1}).code;
  }
  // How often the launcher ran in it.
  size_t Runs(int nodes, const std::string& image) {
    RunScript(nodes, image);
    return base::ReadFile(bin_.path() / "runs")->size() / 2;
  }

  const base::TemporaryDirectory bin_;
};

TEST_F(RunBatchScriptTest, ASecondLauncherEndsTheContainersOfOneThatWasKilled) {
  for (const int nodes : {1, 2}) {
    EXPECT_EQ(Runs(nodes, "team/train:1"), 2u) << nodes;
    EXPECT_EQ(Runs(nodes, ""), 1u) << nodes << ": ranks that are in no container die with it";
  }
}

TEST_F(RunBatchScriptTest, ALaunchersWordOfAFullDiskIsTheScriptsExitCode) {
  ASSERT_TRUE(base::MakeDirectories(bin_.path() / "0").ok());
  for (const int nodes : {1, 2}) {
    std::filesystem::remove(bin_.path() / "0/failed");
    Program("launch", "exit 74");
    EXPECT_EQ(RunScript(nodes), 74) << nodes;
    Program("launch", "touch ${0%/*}/0/failed; exit 74");
    EXPECT_EQ(RunScript(nodes), 74) << nodes << ": also where another noted that it failed";
    Program("launch", "exit 0");
    EXPECT_EQ(RunScript(nodes), 1) << nodes;
  }
}

TEST_F(RunBatchScriptTest, WhatTwoLaunchersHaveLeftIsRemovedInThreeAttempts) {
  std::filesystem::create_directories(bin_.path() / "0");
  Program("launch", "echo x >>${0%/*}/runs; >${1%/*}/containers; kill -9 $$");
  for (const int works : {1, 3, 9}) {
    Program("remove", absl::StrCat("echo $1 >>${0%/*}/removals; [ $(wc -l <${0%/*}/removals) = ",
                                   works, " ] || kill -9 $$; rm $1/containers"));
    for (const int nodes : {1, 2}) {
      std::filesystem::remove(bin_.path() / "removals");
      EXPECT_EQ(Runs(nodes, "team/train:1"), 2u) << nodes;
      const std::string removals = *base::ReadFile(bin_.path() / "removals");
      EXPECT_EQ(std::count(removals.begin(), removals.end(), '\n'), std::min(works, 3)) << nodes;
      EXPECT_THAT(removals, HasSubstr((bin_.path() / "0\n").native()));
      EXPECT_EQ(std::filesystem::exists(bin_.path() / "0/containers"), works > 3);
    }
  }
}

TEST(NamesItsNodes, ByAListOrAFile) {
  EXPECT_TRUE(NamesItsNodes({"--licenses=x", "--nodelist=n1"}));
  EXPECT_TRUE(NamesItsNodes({"--nodefile=f"}));
  EXPECT_FALSE(NamesItsNodes({"--exclude=n1"}));
}

}  // namespace
}  // namespace tutti::engine
