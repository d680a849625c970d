#include "platform/launch/distribution/ray_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/process/command.h"
#include "base/test_patience.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;
using ::testing::Not;

spec::LaunchPlan TwoNodes(int node) {
  spec::LaunchPlan plan;
  plan.allocation_id = "job.1";
  plan.node_index = node;
  plan.nodes = {{"n1", "127.77.0.1", 0, 1}, {"n2", "127.77.0.2", 1, 1}};
  plan.start_port = 6379;
  plan.distribution.type = "ray";
  plan.job_token = absl::StrCat("beef", ::getpid());
  return plan;
}

// Runs what a node of the cluster runs, with programs of the test's own in place of Ray's.
class RayCommandTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(base::MakeDirectories(bin_).ok()); }
  void TearDown() override { fs::remove_all(RayFolder(TwoNodes(0))); }

  void MakeRay(const std::string& script) { MakeProgram("ray", script); }
  void MakeProgram(const std::string& name, const std::string& script) {
    const fs::path file = bin_ / name;
    ASSERT_TRUE(base::WriteFileAtomic(file, absl::StrCat("#!/bin/sh\n", script)).ok());
    fs::permissions(file, fs::perms::owner_all);
  }

  base::CommandResult Run(const spec::LaunchPlan& plan, const std::string& command) {
    NodeFacts facts;
    facts.cores = 3;
    facts.gpus = {"4", "5"};
    base::ChildOptions options;
    options.arguments = {"/bin/sh", "-c", RayCommand(plan, facts, command)};
    options.environment = {{"PATH", absl::StrCat(bin_.string(), ":/usr/bin:/bin")},
                           {"AZ_BATCHAI_JOB_TEMP", folder_.string()}};
    const auto result =
        base::RunCommand(options, "", base::Deadline::After(base::Patient(absl::Seconds(60))));
    EXPECT_TRUE(result.ok()) << result.status();
    return result.value_or(base::CommandResult{});
  }

  const base::TemporaryDirectory temporary_;
  const fs::path folder_ = temporary_.path();
  const fs::path bin_ = folder_ / "bin";
};

TEST_F(RayCommandTest, TheHeadIsBegunAndThenTheCommandRunsAsItIs) {
  MakeRay("for word; do echo \"<$word>\"; done >>\"$AZ_BATCHAI_JOB_TEMP/said\"");
  MakeProgram("python3", "exit 0");
  spec::LaunchPlan plan = TwoNodes(0);
  plan.distribution.ray = {.dashboard = false,
                           .dashboard_port = 8000,
                           .head_options = "--resources '{\"a b\": 1}'\n--num-cpus=0"};
  const auto end = Run(plan, "echo \"it's $0\"; cat \"$AZ_BATCHAI_JOB_TEMP/said\"; exit 7");
  EXPECT_EQ(end.exit.code, 7);
  EXPECT_EQ(end.err, "");
  EXPECT_EQ(
      end.out,
      absl::StrCat("it's /bin/sh\n<start>\n<--head>\n<--port=6379>\n<--temp-dir=", RayFolder(plan),
                   ">\n<--node-ip-address=127.77.0.1>\n<--num-cpus=3>\n<--num-gpus=2>\n"
                   "<--min-worker-port=0>\n<--max-worker-port=0>\n"
                   "<--include-dashboard=false>\n<--dashboard-port=8000>\n"
                   "<--resources>\n<{\"a b\": 1}>\n<--num-cpus=0>\n"));
}

TEST_F(RayCommandTest, TheCommandsDriverIsOfTheHeadAlsoWhereNodesShareTheFolder) {
  const std::string session = RayFolder(TwoNodes(0)) + "/session_latest";
  const std::string file = session + "/node_ip_address.json";
  MakeRay(absl::StrCat("mkdir -p ", session, "; echo n1 >", file));
  MakeProgram("python3", absl::StrCat("echo n2 >", file));  // while the others join
  EXPECT_EQ(Run(TwoNodes(0), "cat " + file).out, "n1\n");
}

TEST_F(RayCommandTest, AHeadThatCannotBeBegunFailsTheNodeBeforeTheCommand) {
  MakeRay("echo the port is taken; exit 3");
  const auto end = Run(TwoNodes(0), "echo never");
  EXPECT_EQ(end.exit.code, 3);
  EXPECT_EQ(end.out, "");
  EXPECT_EQ(end.err,
            "the port is taken\n"
            "tutti: Ray's head could not be begun on node n1: ray start ended with 3\n");
}

TEST_F(RayCommandTest, AHeadThatHangsIsEndedAndFailsTheNode) {
  MakeRay("echo begins");
  MakeProgram("timeout", "[ $3 = 180 ] && shift 3 && \"$@\" && exit 124");
  const auto end = Run(TwoNodes(0), "echo never");
  EXPECT_EQ(end.exit.code, 124);
  EXPECT_EQ(end.out, "");
  EXPECT_EQ(end.err, "begins\ntutti: Ray's head could not be begun on node n1: ray start hung\n");
}

TEST_F(RayCommandTest, AClusterThatRunsNoTasksFailsTheNodeBeforeTheCommand) {
  MakeRay("true");
  MakeProgram("python3", "echo 1 of 2 nodes; exit 1");
  const auto end = Run(TwoNodes(0), "echo never");
  EXPECT_EQ(end.exit.code, 1);
  EXPECT_EQ(end.out, "");
  EXPECT_EQ(end.err,
            "1 of 2 nodes\n"
            "tutti: Ray on node n1 did not run a task on each of the 2 nodes: the check ended "
            "with 1\n");
}

TEST_F(RayCommandTest, AWorkerJoinsOnceTheHeadAnswersAndEndsWithRay) {
  MakeRay(
      "echo \"$*\" >>\"$AZ_BATCHAI_JOB_TEMP/said\"\n"
      "if [ $1 = health-check ]; then [ $(wc -l <\"$AZ_BATCHAI_JOB_TEMP/said\") -ge 2 ]\n"
      "else echo 'Ray runtime started.'; exit 4; fi");
  spec::LaunchPlan plan = TwoNodes(1);
  plan.distribution.ray.worker_options = "--labels a=b";
  const auto end = Run(plan, "echo never");
  EXPECT_EQ(end.exit.code, 4);
  EXPECT_EQ(end.out, "");
  EXPECT_EQ(end.err,
            "Ray runtime started.\n"
            "tutti: error: Ray on node n2 has ended: ray start ended with 4\n");
  const std::string check = "health-check --address=127.77.0.1:6379 --skip-version-check\n";
  EXPECT_EQ(base::ReadFile(folder_ / "said").value_or(""),
            absl::StrCat(check, check,
                         "start --address=127.77.0.1:6379 --node-ip-address=127.77.0.2 "
                         "--num-cpus=3 --num-gpus=2 --min-worker-port=0 --max-worker-port=0 "
                         "--labels a=b --block\n"));
}

TEST_F(RayCommandTest, AWorkerThatCannotJoinIsNotTriedAgain) {
  MakeRay("[ $1 = health-check ] || { echo RuntimeError: another version; exit 1; }");
  const auto end = Run(TwoNodes(1), "echo never");
  EXPECT_EQ(end.exit.code, 1);
  EXPECT_EQ(end.err,
            "RuntimeError: another version\n"
            "tutti: node n2 could not join Ray at 127.77.0.1:6379: ray start ended with 1\n");
}

TEST_F(RayCommandTest, ANodeWithoutRaySaysSoAtOnce) {
  for (const int node : {0, 1}) {
    const auto end = Run(TwoNodes(node), "echo never");
    EXPECT_EQ(end.exit.code, 127);
    EXPECT_EQ(end.err,
              absl::StrCat("tutti: node n", node + 1,
                           " has no program ray, which the job's environment must have\n"));
  }
}

TEST(RayFolder, IsShortTheSameOnEveryNodeAndAnotherForEachAllocation) {
  // With a session's name and the sockets in it a path has less than 108 characters.
  EXPECT_LE(RayFolder(TwoNodes(0)).size(), 36u);
  EXPECT_EQ(RayFolder(TwoNodes(0)), RayFolder(TwoNodes(1)));
  spec::LaunchPlan again = TwoNodes(0);
  again.allocation_id = "job.1-2";
  EXPECT_NE(RayFolder(again), RayFolder(TwoNodes(0)));
  spec::LaunchPlan other = TwoNodes(0);
  other.job_token = "cafe";
  EXPECT_NE(RayFolder(other), RayFolder(TwoNodes(0)));
}

TEST(RayEnvironment, HasATokenOfTheJobUnlessTheJobSaysOtherwise) {
  spec::LaunchPlan plan = TwoNodes(0);
  Variables variables = EnvironmentOf(plan, 0, {});
  EXPECT_EQ(variables.at("RAY_AUTH_MODE"), "token");
  const std::string token = variables.at("RAY_AUTH_TOKEN");
  EXPECT_EQ(token.size(), 64u);
  EXPECT_NE(token, plan.job_token);
  EXPECT_EQ(EnvironmentOf(TwoNodes(1), 0, {}).at("RAY_AUTH_TOKEN"), token);
  plan.environment_variables["RAY_AUTH_MODE"] = "disabled";
  EXPECT_EQ(EnvironmentOf(plan, 0, {}).at("RAY_AUTH_MODE"), "disabled");
  plan.job_token = "feed";
  EXPECT_NE(EnvironmentOf(plan, 0, {}).at("RAY_AUTH_TOKEN"), token);
  plan.distribution.type = "pytorch";
  EXPECT_EQ(EnvironmentOf(plan, 0, {}).count("RAY_AUTH_TOKEN"), 0u);
}

TEST(RayEnvironment, FindsTheHeadAndLeavesThreadsToRay) {
  const Variables variables = EnvironmentOf(TwoNodes(1), 0, {});
  EXPECT_THAT(variables, testing::Contains(testing::Pair("RAY_ADDRESS", "127.77.0.1:6379")));
  EXPECT_THAT(variables, Not(testing::Contains(testing::Key("OMP_NUM_THREADS"))));
}

}  // namespace
}  // namespace tutti::launch
