// A job from its submission to its end, and what users do with it.
// Covers: admission/admission.cc, admission/job_name.cc, admission/preflight.cc,
// admission/submission_check.cc, allocation/local_scheduler.cc, allocation/list_nodes.cc,
// allocation/cordons.cc,
// jobs/job_deletion.cc, jobs/insertions.cc, jobs/job_table.cc, jobs/live_job.cc,
// jobs/placed_job.cc, jobs/shared_state.cc, service_core.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <thread>

#include "absl/strings/match.h"
#include "base/deadline.h"
#include "base/hash.h"
#include "base/machine/folder.h"
#include "base/status.h"
#include "base/test_patience.h"
#include "platform/service/results/disk_room.h"
#include "platform/service/world_for_tests.h"

namespace tutti::service {
namespace {

using store::JobState;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string Named(const std::string& name, int nodes = 2, const std::string& priority = "medium") {
  return absl::StrCat("type: command\nname: ", name, "\ncommand: echo hi\nresources:\n",
                      "  instance_count: ", nodes,
                      "\ndistribution:\n  type: mpi\n  process_count_per_instance: 1\n",
                      "limits:\n  timeout: 60\n");
}

// One of one node.
std::string NamedWithin(const std::string& name, int seconds) {
  return absl::StrCat("type: command\nname: ", name,
                      "\ncommand: echo hi\nlimits: {timeout: ", seconds, "}\n");
}

TEST_F(ServiceTest, KnowsTheLastJobOfAScriptOrFileBeforeAJob) {
  const auto submit = [&](const std::string& name, const std::string& file, const char* folder,
                          std::map<std::string, std::string> origin = {}) {
    const auto job = service().Submit(
        {.file = file, .text = Named(name), .base_directory = folder, .origin = std::move(origin)});
    EXPECT_TRUE(job.ok()) << job.status();
    return *service().FormerOf(service().GetJob(name)->record.job);
  };
  EXPECT_EQ(submit("a", "job.yml", "/x"), "");
  EXPECT_EQ(submit("b", "job.yml", "/y"), "") << "of another folder";
  EXPECT_EQ(submit("c", "../x/job.yml", "/x"), "a") << "named from another folder";
  EXPECT_EQ(submit("d", "job.yml", "/x"), "c");
  EXPECT_EQ(submit("e", "job of train.py", "/x", {{"program", "python3 train.py"}}), "");
  EXPECT_EQ(submit("f", "job of x/train.py", "/x", {{"program", "python3 train.py"}}), "e");
  EXPECT_EQ(submit("g", "job of test.py", "/x", {{"program", "python3 test.py"}}), "");
}

TEST_F(ServiceTest, LeadsAJobThroughEveryStateToItsEnd) {
  const auto submitted = world_.Submit();
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  EXPECT_EQ(submitted->record.job.id, "j");
  EXPECT_EQ(submitted->record.last.state, JobState::kQueued);
  ASSERT_TRUE(world_.StepUntilOver("j")) << world_.Reason("j");
  EXPECT_EQ(world_.History("j"),
            "Queued Provisioning Preparing Starting Running Finalizing Completed");
  EXPECT_EQ(world_.Reason("j"), "all 2 processes ended with exit code 0");
  EXPECT_EQ(world_.engine().Starts().size(), 2u);
  EXPECT_EQ(world_.engine().stop_calls, 0);
  const auto job = *service().GetJob("j");
  EXPECT_THAT(job.nodes, ElementsAre("n1", "n2"));
  EXPECT_TRUE(job.record.started.has_value());
  EXPECT_TRUE(job.record.ended().has_value());
  std::vector<std::string> paths;
  const auto files = service().files().List("j");
  for (const JobFile& file : *files) paths.push_back(file.path);
  EXPECT_THAT(paths, ElementsAre("logs/rank-0.stdout", "logs/rank-1.stdout", "outputs/from-n1",
                                 "outputs/from-n2"));
}

// What the reader finds and what the service finds are one answer, and no fault stems from another.
TEST_F(ServiceTest, TellsTheFaultsOfTheFileAndOfTheMachineInOneAnswer) {
  const auto faults = [&](const std::string& text) {
    const auto checked = service().Check({.text = text, .base_directory = "/gone"});
    EXPECT_TRUE(absl::IsInvalidArgument(checked.status())) << checked.status();
    return std::vector<std::string>(absl::StrSplit(checked.status().message(), '\n'));
  };
  const std::string code = "/gone/src does not exist";
  EXPECT_THAT(faults("comand: x\ncode: src\nresources: {instance_count: 3}\n"),
              ElementsAre("job.yml:1: the key \"command\" is missing: say what each process runs",
                          "job.yml:1: unknown key \"comand\" (did you mean \"command\"?)",
                          "job.yml:2: code: " + code,
                          "job.yml:3: instance_count is 3, but the cluster has 2 nodes: the job "
                          "could never start"));
  EXPECT_THAT(faults("command: no-such-program\ncompute: gpus\nenvironment: nowhere\n"
                     "resources: {instance_count: 3}\n"),
              ElementsAre(HasSubstr("job.yml:2: compute \"gpus\" does not exist"),
                          HasSubstr("job.yml:3: environment \"nowhere\" is not known here")));
  EXPECT_THAT(faults("type: pipeline\njobs:\n  a: {command: x, code: src, foo: 1}\n"
                     "  b: {command: x, resources: {instance_count: 4}}\n"
                     "  c: {command: x, resources: {instance_count: 5}}\n"),
              ElementsAre("job.yml:3: unknown key \"foo\"", "job.yml:3: code: " + code,
                          HasSubstr("instance_count is 4"), HasSubstr("instance_count is 5")));
}

TEST_F(ServiceTest, PlansTheSameGangForEveryNode) {
  ASSERT_TRUE(world_.Submit().ok());
  service().Tick();
  const std::string id = world_.engine().Allocations().at(0);
  for (int node = 0; node < 2; ++node) {
    const auto plan = spec::LaunchPlanFromJson(
        base::ReadFile(world_.engine().root() / id / absl::StrCat("plan-", node)).value());
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->node_index, node);
    EXPECT_EQ(plan->allocation_id, id);
    EXPECT_EQ(plan->job_id, "j");
    EXPECT_EQ(plan->master_port, 6105);
    EXPECT_EQ(plan->timeout_seconds, 60);
    EXPECT_EQ(plan->memory_bytes, int64_t{1} << 30);
    EXPECT_EQ(plan->job_token.size(), 64u);
    ASSERT_EQ(plan->nodes.size(), 2u);
    EXPECT_EQ(plan->nodes[1].address, "127.0.0.3");
    EXPECT_EQ(plan->nodes[1].first_rank, 1);
  }
}

TEST_F(ServiceTest, RaysHeadHasItsUsualPortOrThatOfItsFile) {
  for (const auto& [settings, port] : {std::pair("", 6379), std::pair(", port: 7000", 7000)}) {
    const auto submitted = world_.Submit(absl::StrCat(
        "type: command\nname: r", port,
        "\ncommand: echo hi\nenvironment_variables: {PATH: .}\ndistribution: {type: ray", settings,
        "}\n"));
    ASSERT_TRUE(submitted.ok()) << submitted.status();
    service().Tick();
    const std::string id = world_.engine().Allocations().back();
    const auto plan =
        spec::LaunchPlanFromJson(base::ReadFile(world_.engine().root() / id / "plan-0").value());
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->start_port, port);
    EXPECT_EQ(plan->distribution.ray.port, port == 7000 ? 7000 : 0);
  }
}

TEST_F(ServiceTest, RefusesWhatCanNeverRunAndKeepsNothingOfIt) {
  for (const std::string& text :
       {std::string("comand: echo\n"), Named("big", 3), std::string("type: command\n"),
        std::string("type: command\ncommand: python none.py\ncode: /does/not/exist\n")}) {
    const auto refused = world_.Submit(text);
    EXPECT_TRUE(absl::IsInvalidArgument(refused.status())) << refused.status();
  }
  EXPECT_THAT(std::string(world_.Submit(Named("big", 3)).status().message()),
              HasSubstr(":5: instance_count is 3, but the cluster has 2 nodes"));
  EXPECT_THAT(std::string(world_.Submit("command: pyhton3 -V\n").status().message()),
              HasSubstr(":1: the command runs \"pyhton3\", which is not in the service's PATH"));
  EXPECT_THAT(*service().ListJobs({}), IsEmpty());
  EXPECT_FALSE(service().Submit({.text = kJobFile, .base_directory = "relative"}).ok());
  EXPECT_TRUE(absl::IsNotFound(service()
                                   .Submit({.text = kJobFile,
                                            .base_directory = "/",
                                            .snapshot = "sha256:" + base::Hex(base::Sha256Of("x"))})
                                   .status()));
}

// A client's folders are another machine's.
TEST_F(ServiceTest, DoesNotLookHereForCodeThatWasSent) {
  const std::string sent = "sha256:" + base::Hex(base::Sha256Of("x"));
  const std::string code = "/of/another/machine";
  const std::string command = "command: python train.py\ncode: " + code + "\n";
  EXPECT_TRUE(service().Check({.text = command, .base_directory = "/", .snapshot = sent}).ok());
  const std::string pipeline =
      "type: pipeline\njobs: {a: {environment: host, command: python train.py, code: " + code +
      "}}\n";
  EXPECT_TRUE(
      service().Check({.text = pipeline, .base_directory = "/", .snapshots = {{code, sent}}}).ok());
  for (const std::string& text : {command, pipeline}) {
    const auto refused = service().Check({.text = text, .base_directory = "/"});
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr(code + " does not exist"));
  }
}

TEST_F(ServiceTest, PlacesAJobThatNeedNotWaitWithItsFirstEvent) {
  world_.Step();  // the nodes are known to be idle
  const auto first = world_.Submit(Named("first"));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->record.last.state, store::JobState::kProvisioning);
  EXPECT_EQ(world_.History("first"), "Queued Provisioning");
  EXPECT_EQ(world_.engine().Starts().size(), 2u);  // before the answer, without the loop
  ASSERT_TRUE(world_.Submit(Named("second")).ok());
  EXPECT_EQ(world_.History("second"), "Queued");  // the nodes are taken
  ASSERT_TRUE(world_.StepUntilOver("second"));
  EXPECT_EQ(world_.History("first"), world_.History("second"));
  EXPECT_EQ(world_.State("first"), store::JobState::kCompleted);
}

TEST_F(ServiceTest, PlacesAJobThatFitsBesideThoseThatWaitWithItsFirstEvent) {
  world_.launchers().script() = {{0, nullptr}};  // it goes on
  world_.Step();
  ASSERT_TRUE(world_.Submit(Named("one-of-two", 1)).ok());
  ASSERT_TRUE(world_.Submit(Named("gang")).ok());
  ASSERT_EQ(world_.History("gang"), "Queued");
  const size_t before = world_.engine().Starts().size();
  ASSERT_TRUE(world_.Submit(NamedWithin("second", 30)).ok());
  EXPECT_EQ(world_.History("second"), "Queued Provisioning");
  EXPECT_EQ(world_.engine().Starts().size(), before + 1);
  ASSERT_TRUE(world_.Submit(NamedWithin("third", 1)).ok());
  EXPECT_EQ(world_.History("third"), "Queued") << "no node is left";
}

TEST_F(ServiceTest, AJobThatWouldHoldUpOneAheadOfItIsNotPlaced) {
  world_.launchers().script() = {{0, nullptr}};
  world_.Step();
  ASSERT_TRUE(world_.Submit(NamedWithin("ends", 60)).ok());
  ASSERT_TRUE(world_.Submit(Named("gang")).ok());
  ASSERT_TRUE(world_.Submit(NamedWithin("long", 3600)).ok());
  EXPECT_EQ(world_.History("long"), "Queued") << "the gang has both nodes in a minute";
  ASSERT_TRUE(world_.Submit(NamedWithin("short", 30)).ok());
  EXPECT_EQ(world_.History("short"), "Queued Provisioning");
}

TEST_F(ServiceTest, RefusesAndEndsAJobThatHasBegunWhenTheDiskTakesNothing) {
  size_t begun = 0;
  bool fails = false;
  world_.Open({.on_sync = [&] {
    begun = world_.engine().Starts().size();
    return fails ? absl::UnavailableError("the device fails") : absl::OkStatus();
  }});
  ASSERT_TRUE(world_.Submit(Named("zeroth")).ok());  // a service's first write is always synced
  ASSERT_TRUE(world_.StepUntilOver("zeroth"));
  world_.Step();
  const size_t before = world_.engine().Starts().size();
  fails = true;
  EXPECT_EQ(world_.Submit(Named("first")).status(), absl::UnavailableError("the device fails"));
  EXPECT_EQ(begun, before + 2);
  fails = false;
  ASSERT_TRUE(world_.StepUntilOver("first"));
  EXPECT_EQ(world_.State("first"), store::JobState::kCanceled);
}

TEST_F(ServiceTest, NothingFollowsFromAStepThatTheDiskDoesNotTake) {
  absl::Status sync;
  world_.Open({.on_sync = [&] { return sync; }});
  ASSERT_TRUE(world_.Submit().ok());  // its nodes are not known to be idle: it is queued
  sync = absl::UnavailableError("the device fails");
  for (int i = 0; i < 3; ++i) world_.Step();
  EXPECT_EQ(world_.service().GetJob("j").status(), sync) << "it is told what no disk has";
  EXPECT_EQ(world_.service().EventsBefore("j", 0, 1).status(), sync);
  EXPECT_TRUE(world_.engine().Starts().empty());
  EXPECT_THAT(world_.service().Problems(),
              testing::ElementsAre(HasSubstr("the database cannot be brought onto the disk")));
  sync = absl::OkStatus();
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_EQ(world_.State("j"), JobState::kCompleted);
  EXPECT_EQ(world_.engine().start_calls, 1);
  EXPECT_TRUE(world_.service().Problems().empty());
}

TEST_F(ServiceTest, StepsOfOneTickShareASync) {
  std::atomic<int> syncs = 0;
  world_.Open({.on_sync = [&] {
    ++syncs;
    return absl::OkStatus();
  }});
  ASSERT_TRUE(world_.Submit(Named("one", 1)).ok());  // both are queued
  ASSERT_TRUE(world_.Submit(Named("two", 1)).ok());
  syncs = 0;
  world_.service().Tick();
  EXPECT_EQ(world_.engine().Starts().size(), 2u);
  EXPECT_EQ(syncs, 1);
}

TEST_F(ServiceTest, SaysAtOnceOfAJobThatCannotBeginThatItHasFailed) {
  world_.Step();
  std::filesystem::create_directories(folder_.path() / "jobs");
  DiskEngine::Put(folder_.path() / "jobs/j", "in the way of its folder");
  const auto status = world_.Submit();
  ASSERT_EQ(status.status(), absl::OkStatus());
  EXPECT_EQ(status->record.last.state, JobState::kFailed);
  EXPECT_THAT(status->reason, HasSubstr("it could not be started: "));
  EXPECT_EQ(world_.State("j"), JobState::kFailed);
  world_.Step();
  EXPECT_EQ(world_.engine().start_calls, 0);
}

TEST_F(ServiceTest, GivesEachNodeToOneOfThoseThatComeAtTheSameTime) {
  world_.Step();
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back(
        [&, i] { EXPECT_TRUE(world_.Submit(Named(absl::StrCat("job-", i), 1)).ok()); });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<std::string> taken;
  for (int i = 0; i < 8; ++i) {
    const auto job = service().GetJob(absl::StrCat("job-", i));
    ASSERT_TRUE(job.ok()) << job.status();
    for (const std::string& node : job->nodes) EXPECT_TRUE(taken.insert(node).second) << node;
  }
  for (int i = 0; i < 8; ++i) {
    EXPECT_TRUE(world_.StepUntilState(absl::StrCat("job-", i), store::JobState::kCompleted));
  }
}

TEST_F(ServiceTest, RefusesANameThatIsTaken) {
  ASSERT_TRUE(world_.Submit().ok());
  EXPECT_TRUE(absl::IsAlreadyExists(world_.Submit().status()));
}

TEST_F(ServiceTest, NamesAJobAfterWhatItsUserCalledIt) {
  const auto job =
      world_.Submit("type: command\ndisplay_name: 'CIFAR: ResNet 20!'\ncommand: 'true'\n");
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_THAT(job->record.job.id, ::testing::MatchesRegex("cifar-resnet-20-[0-9a-f]{6}"));
}

TEST_F(ServiceTest, SaysWhatAJobWaitsForAndWhenItIsExpectedToStart) {
  ASSERT_TRUE(world_.Submit(Named("first")).ok());
  ASSERT_TRUE(world_.Submit(Named("second")).ok());
  world_.launchers().script() = {{0, nullptr}, {1, nullptr}};
  ASSERT_TRUE(world_.StepUntilState("first", JobState::kRunning));
  const auto waiting = *service().GetJob("second");
  EXPECT_EQ(waiting.record.last.state, JobState::kQueued);
  EXPECT_NE(waiting.reason, "submitted");
  ASSERT_TRUE(waiting.expected_start.has_value());
  EXPECT_GT(*waiting.expected_start, world_.clock().Now());
  world_.clock().Set(world_.clock().Now() + absl::Hours(24));
  world_.Step();
  EXPECT_GT(service().GetJob("second")->expected_start, world_.clock().Now())
      << "of a job that runs for as long as before";
  const auto nodes = service().ListNodes().nodes;
  EXPECT_EQ(nodes.at(0).job, "first");
  EXPECT_EQ(world_.History("second"), "Queued");  // waiting writes no events
  world_.launchers().script() = {};
  ASSERT_TRUE(world_.StepUntilOver("second"));
  EXPECT_EQ(world_.State("first"), JobState::kCompleted);
  EXPECT_EQ(service().ListNodes().nodes.at(0).job, "");
}

TEST_F(ServiceTest, NoJobStartsOnACordonedNodeAlsoAfterARestart) {
  EXPECT_EQ(service().Cordon("local", "n9", "x").message(),
            "there is no node \"n9\": tutti node list shows them");
  EXPECT_TRUE(absl::IsInvalidArgument(service().Cordon("local", "n1", "")));
  EXPECT_TRUE(absl::IsInvalidArgument(service().Cordon("local", "n1", "a\x1b[2Jb")));
  EXPECT_TRUE(absl::IsInvalidArgument(service().Cordon("local", "n1", "two\nlines")));
  EXPECT_TRUE(absl::IsNotFound(service().Cordon("hpc", "n1", "x")));
  ASSERT_TRUE(service().Cordon("local", "n1", "a fan is loud").ok());
  world_.Open();
  ASSERT_TRUE(world_.Submit(Named("wide")).ok());
  ASSERT_TRUE(world_.Submit(Named("narrow", 1)).ok());
  ASSERT_TRUE(world_.StepUntilOver("narrow")) << world_.Reason("narrow");
  EXPECT_THAT(service().GetJob("narrow")->nodes, ElementsAre("n2"));
  EXPECT_EQ(service().GetJob("wide")->reason,
            "waits for 2 nodes: 1 of 2 is cordoned (tutti node list says why)");
  const engine::Node node = service().ListNodes().nodes.at(0).node;
  EXPECT_EQ(node.state, "cordoned");
  EXPECT_EQ(node.reason, "a fan is loud");
  ASSERT_TRUE(service().Uncordon("local", "n1").ok());
  EXPECT_TRUE(absl::IsNotFound(service().Uncordon("local", "n1")));
  ASSERT_TRUE(world_.StepUntilOver("wide")) << world_.Reason("wide");
  EXPECT_EQ(world_.State("wide"), JobState::kCompleted);
}

TEST_F(ServiceTest, WhyALongQueueWaitsIsFoundOutForWhoAsksAndNotForEachOfThem) {
  ASSERT_TRUE(service().Cordon("local", "n1", "a fan is loud").ok());
  world_.launchers().script() = {{0, nullptr}};
  ASSERT_TRUE(world_.Submit(Named("first", 1)).ok());
  ASSERT_TRUE(world_.StepUntilState("first", JobState::kRunning));
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(world_.Submit(Named(absl::StrCat("w", i), 1)).ok());
  world_.clock().Advance(absl::Seconds(2));
  service().Tick();
  EXPECT_EQ(world_.Reason("w9"), "waits for 1 node: 0 of 1 are free; 9 jobs are ahead");
  ASSERT_TRUE(world_.Submit(Named("last", 1)).ok());
  service().Tick();
  EXPECT_EQ(world_.Reason("last"), "submitted");
  world_.clock().Advance(absl::Seconds(2));
  EXPECT_EQ(world_.Reason("last"), "waits for 1 node: 0 of 1 are free; 200 jobs are ahead");
}

TEST_F(ServiceTest, OfThoseFarBehindInAVeryLongQueueItIsSaidHowManyAreAheadAtLeast) {
  ASSERT_TRUE(service().Cordon("local", "n1", "a fan is loud").ok());
  world_.launchers().script() = {{0, nullptr}};
  ASSERT_TRUE(world_.Submit(Named("first", 1)).ok());
  ASSERT_TRUE(world_.StepUntilState("first", JobState::kRunning));
  for (int i = 0; i < 1100; ++i) ASSERT_TRUE(world_.Submit(Named(absl::StrCat("w", i), 1)).ok());
  ASSERT_TRUE(world_.Submit(Named("wide", 2)).ok());
  world_.clock().Advance(absl::Seconds(2));
  EXPECT_EQ(world_.Reason("w999"), "waits for 1 node: 0 of 1 are free; 999 jobs are ahead");
  const char* const kAtLeast = "waits for 1 node: 0 of 1 are free; 1000 or more jobs are ahead";
  EXPECT_EQ(world_.Reason("w1000"), kAtLeast);
  EXPECT_EQ(world_.Reason("w1099"), kAtLeast);
  EXPECT_THAT(world_.Reason("wide"), HasSubstr("1 of 2 is cordoned"));
  ASSERT_TRUE(world_.Submit(Named("last", 1)).ok());
  EXPECT_EQ(world_.Reason("last"), kAtLeast) << "of its kind it is known at once";
}

TEST_F(ServiceTest, CordonsOfManyAtTheSameTimeAreTheSameInTheStore) {
  for (int round = 0; round < 50; ++round) {
    std::vector<std::thread> users;
    for (int i = 0; i < 4; ++i) {
      users.emplace_back([&, i] {
        if (i % 2 == 0) {
          EXPECT_TRUE(service().Cordon("local", "n1", absl::StrCat("reason ", i)).ok());
        } else {
          service().Uncordon("local", "n1").IgnoreError();
        }
      });
    }
    for (std::thread& user : users) user.join();
    const std::string seen = service().ListNodes().nodes.at(0).node.reason;
    const auto kept = world_.store().Cordons();
    ASSERT_TRUE(kept.ok()) << kept.status();
    EXPECT_EQ(seen, kept->empty() ? "" : kept->front().reason);
  }
}

TEST_F(ServiceTest, StopsTheWholeGangWhenARankIsKilledAndSaysWhich) {
  world_.launchers().script() = {{0, nullptr}, {1, {{"signal", 9}}}};
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_EQ(world_.State("j"), JobState::kFailed);
  EXPECT_EQ(world_.Reason("j"), "rank 1 on n2 was killed by signal 9 (SIGKILL)");
  EXPECT_GE(world_.engine().stop_calls, 1);
  const auto failures = service().GetJob("j")->failures;
  ASSERT_EQ(failures.size(), 2u);
  EXPECT_EQ(failures[0].rank, 1);
  EXPECT_FALSE(failures[0].consequence);
  EXPECT_TRUE(failures[1].consequence);
}

TEST_F(ServiceTest, NamesTheFirstOfTwoRanksThatFail) {
  world_.launchers().script() = {
      {0, {{"code", 1}, {"last_error", "UNAVAILABLE: rank 1 left the group"}}},
      {1, {{"code", 3}, {"last_error", "ValueError: boom"}}}};
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_EQ(world_.Reason("j"), "rank 1 on n2 failed with exit code 3: ValueError: boom");
  EXPECT_TRUE(service().GetJob("j")->failures.at(1).consequence);
}

TEST_F(ServiceTest, CatchesARankThatLeavesEarly) {
  world_.launchers().script() = {{0, nullptr}, {1, nlohmann::json::object()}};
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kRunning));
  for (int i = 0; i < 5; ++i) world_.Step();
  EXPECT_EQ(world_.State("j"), JobState::kRunning);
  world_.launchers().script()[0] = {{"code", 1}, {"last_error", "rank 1 left the group"}};
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_EQ(world_.State("j"), JobState::kFailed);
  EXPECT_THAT(world_.Reason("j"), HasSubstr("rank 1 on n2 exited early (exit code 0)"));
}

// The folder of a whole service on a disk of a few megabytes, which fills up.
TEST(ServiceOnASmallDisk, RefusesWhatItCannotKeepAndGoesOnOnceThereIsSpace) {
  base::TemporaryDirectory parent;
  const std::string mount = (parent.path() / "small").native();
  std::filesystem::create_directory(mount);
  if (std::system(absl::StrCat("mount -t tmpfs -o size=8m none ", mount, " 2>/dev/null").c_str())) {
    GTEST_SKIP() << "cannot mount a tmpfs";
  }
  {
    World world(mount);
    ASSERT_TRUE(world.Submit(Named("first")).ok());
    ASSERT_TRUE(world.StepUntilState("first", JobState::kRunning));
    const std::string ballast = absl::StrCat(mount, "/ballast");
    std::ofstream(ballast) << std::string(size_t{9} << 20, 'x');
    EXPECT_TRUE(absl::IsResourceExhausted(world.Submit(Named("second")).status()));
    EXPECT_TRUE(absl::IsNotFound(world.service().GetJob("second").status()));
    world.service().Tick();
    EXPECT_EQ(world.State("first"), JobState::kRunning);
    std::filesystem::remove(ballast);
    EXPECT_TRUE(world.StepUntilOver("first"));
    EXPECT_EQ(world.State("first"), JobState::kCompleted);
    EXPECT_EQ(world.FollowerOutput("first").size(), 13u);
    EXPECT_TRUE(world.Submit(Named("second")).ok());
  }
  EXPECT_EQ(std::system(absl::StrCat("umount ", mount).c_str()), 0);
}

// How much a result may have is asked of the disk that it goes to, in both directions.
TEST(ServiceWithJobsOnADiskOfTheirOwn, ResultsAskThatDisk) {
  for (const bool jobs_are_larger : {true, false}) {
    base::TemporaryDirectory parent;
    const std::filesystem::path home = parent.path() / "home";
    const auto mount = [](const std::filesystem::path& folder, absl::string_view size) {
      std::filesystem::create_directories(folder);
      return std::system(absl::StrCat("mount -t tmpfs -o size=", size, " none ", folder.native(),
                                      " 2>/dev/null")
                             .c_str()) == 0;
    };
    if (!mount(home, jobs_are_larger ? "64m" : "256m")) GTEST_SKIP() << "cannot mount a tmpfs";
    ASSERT_TRUE(mount(home / "jobs", jobs_are_larger ? "256m" : "64m"));
    {
      World world(home);
      world.launchers().script() = {{0, nullptr}, {1, nullptr}};
      ASSERT_TRUE(world.Submit().ok());
      ASSERT_TRUE(world.StepUntilState("j", JobState::kRunning));
      const std::string id = world.engine().Allocations().at(0);
      auto file = world.service().ReceiveFile(id, 0, "outputs/large", 100 << 20, "");
      EXPECT_EQ(file.ok(), jobs_are_larger) << file.status();
      EXPECT_EQ(absl::IsOutOfRange(file.status()), !jobs_are_larger) << file.status();
    }
    EXPECT_EQ(std::system(absl::StrCat("umount ", home.native(), "/jobs ", home.native()).c_str()),
              0);
  }
}

TEST(ServiceWithJobsOnADiskOfTheirOwn, ThatOneIsFullWhereAStartMeetsAQuotaThere) {
  base::TemporaryDirectory parent;
  const std::filesystem::path home = parent.path() / "home", jobs = home / "jobs";
  std::filesystem::create_directories(jobs);
  if (std::system(absl::StrCat("mount -t tmpfs -o size=256m none ", jobs.native(), " 2>/dev/null")
                      .c_str())) {
    GTEST_SKIP() << "cannot mount a tmpfs";
  }
  {
    World world(home);
    world.engine().fail_start =
        base::ErrnoStatus(absl::StrCat("write ", (jobs / "j/plan.json").native()), EDQUOT);
    ASSERT_TRUE(world.Submit().ok());
    for (int i = 0; i < 5; ++i) world.Step();
    EXPECT_EQ(world.State("j"), JobState::kProvisioning) << "it waits";
    const auto second = world.Submit(Named("second"));
    EXPECT_TRUE(second.ok()) << "the service's own disk takes it: " << second.status();
    world.engine().fail_start = absl::OkStatus();
    EXPECT_TRUE(world.StepUntilOver("j"));
  }
  EXPECT_EQ(std::system(absl::StrCat("umount ", jobs.native()).c_str()), 0);
}

// Each finds room before the other has taken its own.
TEST(ServiceOnASmallDisk, ResultsThatComeTogetherLeaveTheMarkFree) {
  base::TemporaryDirectory parent;
  const std::string mount = (parent.path() / "small").native();
  std::filesystem::create_directory(mount);
  if (std::system(
          absl::StrCat("mount -t tmpfs -o size=64m none ", mount, " 2>/dev/null").c_str())) {
    GTEST_SKIP() << "cannot mount a tmpfs";
  }
  {
    World world(mount);
    world.launchers().script() = {{0, nullptr}, {1, nullptr}};
    ASSERT_TRUE(world.Submit().ok());
    ASSERT_TRUE(world.StepUntilState("j", JobState::kRunning));
    const std::string id = world.engine().Allocations().at(0);
    std::vector<std::unique_ptr<IncomingFile>> taken;
    std::vector<std::thread> threads;
    std::mutex mutex;
    for (int i = 0; i < 16; ++i) {
      threads.emplace_back([&, i] {
        auto file =
            world.service().ReceiveFile(id, i % 2, absl::StrCat("outputs/", i), 8 << 20, "");
        const std::lock_guard<std::mutex> lock(mutex);
        if (file.ok()) taken.push_back(*std::move(file));
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_LE(taken.size(), 7u);
    EXPECT_EQ(CheckRoom(mount), absl::OkStatus());
  }
  EXPECT_EQ(std::system(absl::StrCat("umount ", mount).c_str()), 0);
}

TEST_F(ServiceTest, CancelsAQueuedJobAtOnce) {
  ASSERT_TRUE(world_.Submit().ok());
  const auto canceled = service().Cancel("j");
  ASSERT_TRUE(canceled.ok());
  EXPECT_EQ(canceled->record.last.state, JobState::kCanceled);
  for (int i = 0; i < 3; ++i) world_.Step();
  EXPECT_TRUE(world_.engine().Starts().empty());
  EXPECT_TRUE(absl::IsNotFound(service().Cancel("none").status()));
}

class CancelIn : public ServiceTest, public ::testing::WithParamInterface<JobState> {};

TEST_P(CancelIn, EndsTheJobAsCanceledAlsoAcrossARestart) {
  for (const bool restart : {false, true}) {
    const std::string name = restart ? "again" : "once";
    world_.launchers().script() = {{0, nullptr}, {1, nullptr}};
    ASSERT_TRUE(world_.Submit(Named(name)).ok());
    if (GetParam() == JobState::kFinalizing) world_.launchers().script() = {};
    ASSERT_TRUE(world_.StepUntilState(name, GetParam()));
    ASSERT_TRUE(service().Cancel(name).ok());
    if (restart) world_.Open();
    ASSERT_TRUE(service().Cancel(name).ok());  // twice is once
    ASSERT_TRUE(world_.StepUntilOver(name)) << world_.Reason(name);
    EXPECT_EQ(world_.State(name), JobState::kCanceled);
    EXPECT_TRUE(service().Cancel(name).ok());
    EXPECT_EQ(world_.State(name), JobState::kCanceled);
  }
}

INSTANTIATE_TEST_SUITE_P(States, CancelIn,
                         ::testing::Values(JobState::kProvisioning, JobState::kPreparing,
                                           JobState::kStarting, JobState::kRunning,
                                           JobState::kFinalizing),
                         [](const auto& info) { return std::string(Name(info.param)); });

TEST_F(ServiceTest, KeepsTheDiagnosisOfAJobThatIsCanceledWhileItFails) {
  world_.launchers().script() = {{0, nullptr}, {1, {{"code", 7}}}};
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kFinalizing));
  ASSERT_TRUE(service().Cancel("j").ok());
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_EQ(world_.Reason("j"), "rank 1 on n2 failed with exit code 7");
}

TEST_F(ServiceTest, GoesOnAfterARestartInEveryState) {
  int restarts = 0;
  ASSERT_TRUE(world_.Submit().ok());
  for (int i = 0; i < 100 && !IsEnd(world_.State("j")); ++i) {
    world_.Step();
    world_.Open();
    ++restarts;
  }
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_GT(restarts, 5);
  EXPECT_EQ(world_.History("j"),
            "Queued Provisioning Preparing Starting Running Finalizing Completed");
  EXPECT_EQ(world_.engine().Starts().size(), 2u);
  EXPECT_EQ(world_.FollowerOutput("j").size(), 13u);
}

TEST_F(ServiceTest, DeletesAnEndedJobWithAllItHas) {
  ASSERT_TRUE(world_.Submit().ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(service().Delete("j")));
  ASSERT_TRUE(world_.StepUntilOver("j"));
  ASSERT_TRUE(service().Delete("j").ok());
  EXPECT_TRUE(absl::IsNotFound(service().GetJob("j").status()));
  EXPECT_TRUE(absl::IsNotFound(service().Follow("j", "", Now(), {}).status()));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "jobs" / "j"));
  EXPECT_TRUE(absl::IsNotFound(service().Delete("j")));
  ASSERT_TRUE(world_.Submit().ok());  // the name is free again
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_EQ(world_.FollowerOutput("j").size(), 13u);
}

TEST_F(ServiceTest, FinishesADeleteThatWasInterrupted) {
  const std::filesystem::path folder = folder_.path() / "jobs" / "j";
  const auto nothing_is_hidden = [&] { return service().files().Hidden().empty(); };
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilOver("j"));
  ASSERT_TRUE(service().files().Hide("j").ok());  // died before the store forgot the job
  world_.Open();
  service().Run();
  ASSERT_TRUE(base::AwaitPatiently(absl::Seconds(20), nothing_is_hidden));
  EXPECT_EQ(world_.FollowerOutput("j").size(), 13u);
  ASSERT_TRUE(service().files().Hide("j").ok());
  ASSERT_TRUE(world_.store().DeleteJob("j").ok());  // died before the folder was removed
  world_.Open();
  service().Run();
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(20), nothing_is_hidden));
  EXPECT_FALSE(std::filesystem::exists(folder));
}

// Else the folder of the one that is gone could become that of the one that comes.
TEST_F(ServiceTest, AJobsNameIsTakenWhileItsFolderIsHidden) {
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilOver("j"));
  ASSERT_TRUE(service().files().Hide("j").ok());
  ASSERT_TRUE(world_.store().BeginDeletion("j").ok());  // died here
  world_.Open();
  EXPECT_TRUE(absl::IsAlreadyExists(world_.Submit().status()));
  service().Run();
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] { return world_.Submit().ok(); }));
  EXPECT_THAT(service().files().Hidden(), IsEmpty());
}

TEST_F(ServiceTest, AStartRemovesByAndByWhatWasBeingReceived) {
  const auto remove_later = [this](const std::string& name) {
    std::filesystem::create_directories(folder_.path() / name / "a");
    DiskEngine::Put(folder_.path() / name / "a/file", "bytes");
  };
  remove_later("incoming");        // by versions before this one
  remove_later(".gone-incoming");  // by a service that was killed before it had removed it
  remove_later("jobs/.incoming-0123456789abcdef");
  remove_later("snapshots/.incoming-0123456789abcdef");
  world_.Open();
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "incoming")) << "it is out of the way";
  service().Run();
  const auto any_is_left = [this] {
    for (const char* folder : {"", "jobs", "snapshots"}) {
      for (const std::string& name : base::NamesIn(folder_.path() / folder)) {
        if (absl::StartsWith(name, ".gone-") || absl::StartsWith(name, ".incoming")) return true;
      }
    }
    return false;
  };
  const auto deadline = base::Deadline::After(base::Patient(absl::Seconds(20)));
  while (any_is_left() && !deadline.Expired()) std::this_thread::yield();
  EXPECT_FALSE(any_is_left());
}

TEST(ServiceOfManyClients, OneSubmissionThatManySendAtTheSameTimeBecomesOneJob) {
  for (const bool has_name : {false, true}) {
    const base::TemporaryDirectory folder;
    World world(folder.path());
    for (int round = 0; round < 20; ++round) {
      if (round % 2 == 0) world.Step();  // idle nodes are known: it is placed at once
      const std::string number = absl::StrCat(round);
      const std::string named = has_name ? absl::StrCat("name: one", number, "\n") : "";
      const Submission submission = {
          .text = absl::StrCat(named, "command: echo\nenvironment: host\n"),
          .base_directory = "/",
          .nonce = absl::StrCat("nonce ", number)};
      std::vector<absl::StatusOr<JobStatus>> answers(8, absl::UnknownError("none"));
      std::vector<std::thread> clients;
      for (auto& answer : answers) {
        clients.emplace_back([&] { answer = world.service().Submit(submission); });
      }
      for (std::thread& client : clients) client.join();
      for (const auto& answer : answers) {
        ASSERT_TRUE(answer.ok()) << answer.status();
        EXPECT_EQ(answer->record.job.id, answers[0]->record.job.id);
      }
      EXPECT_EQ(world.service().ListJobs({})->size(), static_cast<size_t>(round + 1));
    }
  }
}

}  // namespace
}  // namespace tutti::service
