// Several jobs share a node, each with a part of it. Covers: allocation/local_scheduler.cc,
// attempt/node_room.cc, admission/submission_check.cc, allocation/list_nodes.cc, jobs/job_views.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "absl/strings/match.h"
#include "platform/service/world_for_tests.h"

namespace tutti::service {
namespace {

using store::JobState;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

std::string JobWithPart(const std::string& name, const std::string& part, int nodes = 1) {
  return absl::StrCat(
      "type: command\nname: ", name, "\ncommand: echo hi\nresources:\n  instance_count: ", nodes,
      part.empty() ? "" : absl::StrCat("\n  properties: {tutti: {", part, "}}"),
      nodes == 1 ? "" : "\ndistribution: {type: mpi, process_count_per_instance: 1}", "\n");
}

class ServicePartsTest : public ::testing::Test {
 protected:
  ServicePartsTest() { Open(); }
  void Open() {
    world_.engine().cores = {0, 1, 2, 3};
    world_.engine().gpus = {"4", "7"};
    world_.Open();
  }
  std::string Submit(const std::string& name, const std::string& part, int nodes = 1) {
    const auto job = world_.Submit(JobWithPart(name, part, nodes));
    EXPECT_TRUE(job.ok()) << job.status();
    world_.Step();
    return name;
  }
  std::string Refused(const std::string& part, int nodes = 1) {
    const auto job = world_.Submit(JobWithPart("refused", part, nodes));
    EXPECT_FALSE(job.ok());
    return std::string(job.status().message());
  }
  void Cancel(const std::string& id) {
    EXPECT_TRUE(world_.service().Cancel(id).ok());
    EXPECT_TRUE(world_.StepUntil([&] { return IsEnd(world_.State(id)) && !HasNodes(id); })) << id;
  }
  bool HasNodes(const std::string& id) {
    const auto allocations = world_.engine().Allocations();
    return std::any_of(allocations.begin(), allocations.end(), [&](const std::string& allocation) {
      return JobOfAllocation(allocation) == id;
    });
  }
  spec::LaunchPlan PlanOf(const std::string& id, int node = 0) {
    for (const std::string& allocation : world_.engine().Allocations()) {
      if (JobOfAllocation(allocation) != id) continue;
      const auto file = world_.engine().root() / allocation / absl::StrCat("plan-", node);
      return *spec::LaunchPlanFromJson(base::ReadFile(file).value());
    }
    ADD_FAILURE() << id << " has no nodes: " << world_.Reason(id);
    return {.nodes = {{.name = "none"}}};
  }
  // Its first node has a launcher that has reported its end and does not go, seen by the next
  // service alone. `plan` is that of the node.
  void LeaveLauncher(const std::string& allocation, const std::string& plan) {
    world_.launchers().silent = true;
    const auto folder = world_.engine().root() / allocation;
    std::filesystem::create_directories(folder);
    DiskEngine::Put(folder / "plan-0", plan);
    for (const char* file : {"ran-0", "alive-0"}) DiskEngine::Put(folder / file, "");
  }
  std::string WhyItWaits(const std::string& id) {
    world_.Step();
    return world_.Reason(id);
  }

  base::TemporaryDirectory folder_;
  World world_{
      folder_.path(), {{0, nullptr}, {1, nullptr}}, 2};  // ranks run until they are stopped
};

TEST_F(ServicePartsTest, JobsOfANodeHaveProcessorsMemoryAndGpusOfTheirOwn) {
  Submit("a", "cpus: 2, gpus: 1");
  Submit("b", "cpus: 1, memory: 100MB, gpus: 1");
  EXPECT_THAT(PlanOf("a").cores, ElementsAre(0, 1));
  EXPECT_THAT(PlanOf("a").gpus, ElementsAre("4"));
  EXPECT_EQ(PlanOf("a").memory_bytes, int64_t{1} << 29);
  EXPECT_EQ(PlanOf("b").nodes.at(0).name, "n1");
  EXPECT_THAT(PlanOf("b").cores, ElementsAre(2));
  EXPECT_THAT(PlanOf("b").gpus, ElementsAre("7"));
  EXPECT_EQ(PlanOf("b").memory_bytes, 100'000'000);
  EXPECT_NE(PlanOf("a").master_port, PlanOf("b").master_port);
  const JobStatus shown = world_.service().GetJob("b").value();
  ASSERT_EQ(shown.shares.size(), 1u);
  EXPECT_THAT(shown.shares[0].cores, ElementsAre(2));
}

TEST_F(ServicePartsTest, WhatAJobHadIsGivenAgainOnceItsLauncherHasEnded) {
  Submit("a", "cpus: 3");
  Submit("b", "cpus: 3");
  Submit("c", "cpus: 2");
  EXPECT_THAT(WhyItWaits("c"), HasSubstr("waits for 2 cores of 1 node: 0 of 2 have them free"));
  EXPECT_TRUE(world_.StepUntilState("a", JobState::kRunning));
  Cancel("a");
  EXPECT_TRUE(world_.StepUntil([&] { return world_.State("c") != JobState::kQueued; }));
  EXPECT_THAT(PlanOf("c").cores, ElementsAre(0, 1));
  EXPECT_EQ(PlanOf("c").nodes.at(0).name, "n1");
}

TEST_F(ServicePartsTest, AServiceThatComesBackGivesNothingTwice) {
  Submit("a", "cpus: 2, gpus: 2");
  Open();
  Submit("b", "cpus: 1");
  Open();
  world_.Step();
  Submit("c", "cpus: 1");
  Submit("d", "cpus: 1, gpus: 1");
  EXPECT_THAT(PlanOf("b").cores, ElementsAre(2));
  EXPECT_THAT(PlanOf("c").cores, ElementsAre(3));
  EXPECT_EQ(PlanOf("d").nodes.at(0).name, "n2");
  const std::set<int> ports = {PlanOf("a").master_port, PlanOf("b").master_port,
                               PlanOf("c").master_port};
  EXPECT_EQ(ports.size(), 3u);  // also those that nobody listens on yet
}

TEST_F(ServicePartsTest, WhatIsLeftOfAnEndedJobKeepsItsPartAlsoFromAServiceThatComesBack) {
  Submit("a", "cpus: 2");
  const std::string allocation = world_.engine().Allocations().front();
  const std::string plan = spec::ToJson(PlanOf("a"));
  EXPECT_TRUE(world_.StepUntilState("a", JobState::kRunning));
  Cancel("a");
  LeaveLauncher(allocation, plan);
  Open();
  world_.Step();
  Submit("b", "cpus: 2");
  EXPECT_THAT(PlanOf("b").cores, ElementsAre(2, 3));
  std::filesystem::remove(world_.engine().root() / allocation / "alive-0");
  world_.Step();
  Submit("c", "cpus: 2");
  EXPECT_THAT(PlanOf("c").cores, ElementsAre(0, 1));
}

TEST_F(ServicePartsTest, WhatIsLeftOfADeletedJobKeepsItsPartAndItsNodeFromAServiceThatComesBack) {
  Submit("a", "cpus: 2");
  const std::string allocation = world_.engine().Allocations().front();
  const std::string plan = spec::ToJson(PlanOf("a"));
  EXPECT_TRUE(world_.StepUntilState("a", JobState::kRunning));
  Cancel("a");
  LeaveLauncher(allocation, plan);
  ASSERT_TRUE(world_.service().Delete("a").ok());
  Open();
  world_.Step();
  Submit("b", "cpus: 2");
  EXPECT_THAT(PlanOf("b").cores, ElementsAre(2, 3));
  EXPECT_THAT(world_.service().ListNodes().nodes.at(0).jobs, UnorderedElementsAre("a", "b"));
}

// The job's last event speaks of its second attempt alone, as the first had not been prepared.
TEST_F(ServicePartsTest, WhatIsLeftOfAnEarlierAttemptKeepsItsPartToo) {
  const std::string retried =
      absl::StrCat(JobWithPart("a", "cpus: 2"), "retry_settings: {max_retries: 1}\n");
  ASSERT_TRUE(world_.Submit(retried).ok());
  world_.Step();
  const std::string first = world_.engine().Allocations().front();
  const std::string plan = spec::ToJson(PlanOf("a"));
  const auto has_second = [&] {
    const auto allocations = world_.engine().Allocations();
    return !allocations.empty() && allocations.back() != first;
  };
  for (int i = 0; i < 200 && !has_second(); ++i) {
    world_.service().Tick();
    if (!has_second()) world_.launchers().Kill(first, 0);  // before it has said a word
    world_.clock().Advance(absl::Milliseconds(200));
  }
  ASSERT_TRUE(has_second());
  LeaveLauncher(first, plan);
  Open();
  world_.Step();
  Submit("b", "cpus: 2");
  Submit("c", "cpus: 2");
  EXPECT_NE(world_.State("c"), JobState::kQueued);
  Submit("d", "cpus: 1");
  EXPECT_EQ(world_.State("d"), JobState::kQueued) << "no processor is given twice";
}

TEST_F(ServicePartsTest, AWholeNodeIsOneWithoutParts) {
  Submit("a", "cpus: 1");
  Submit("pair", "", 2);
  EXPECT_THAT(WhyItWaits("pair"), HasSubstr("waits for 2 nodes: 1 of 2 is free"));
  Submit("whole", "");
  EXPECT_EQ(world_.State("whole"), JobState::kQueued);  // it would delay the pair
  Cancel("a");
  EXPECT_TRUE(world_.StepUntil([&] { return world_.State("pair") != JobState::kQueued; }));
  const spec::LaunchPlan plan = PlanOf("pair");
  EXPECT_FALSE(plan.has_part());
  EXPECT_THAT(spec::ToJson(plan), Not(HasSubstr("\"cores\"")));
}

TEST_F(ServicePartsTest, AGangHasItsPartOfEachOfItsNodes) {
  Submit("a", "cpus: 3");
  Submit("gang", "cpus: 1, gpus: 1", 2);
  EXPECT_THAT(PlanOf("gang", 0).cores, ElementsAre(3));
  EXPECT_THAT(PlanOf("gang", 1).cores, ElementsAre(0));
  EXPECT_THAT(PlanOf("gang", 1).gpus, ElementsAre("4"));
  Submit("whole", "");
  EXPECT_EQ(world_.State("whole"), JobState::kQueued);
}

TEST_F(ServicePartsTest, ACordonKeepsPartsOffAndLeavesThoseThatRun) {
  Submit("a", "cpus: 1");
  ASSERT_TRUE(world_.service().Cordon("local", "n1", "a fan is loud").ok());
  Submit("b", "cpus: 1");
  EXPECT_EQ(PlanOf("b").nodes.at(0).name, "n2");
  EXPECT_FALSE(IsEnd(world_.State("a")));
  ASSERT_TRUE(world_.service().Uncordon("local", "n1").ok());
  Submit("c", "cpus: 2");
  EXPECT_FALSE(IsEnd(world_.State("c")));
  EXPECT_NE(world_.State("c"), JobState::kQueued);
}

TEST_F(ServicePartsTest, TheListOfNodesSaysWhatIsUsedAndByWhom) {
  Submit("a", "cpus: 2, gpus: 1");
  Submit("b", "cpus: 1");
  Submit("whole", "");
  const NodeList list = world_.service().ListNodes();
  EXPECT_THAT(list.nodes.at(0).jobs, UnorderedElementsAre("a", "b"));
  EXPECT_EQ(list.nodes.at(0).used, (scheduler::Resources{3, int64_t{3} << 28, 1}));
  EXPECT_THAT(list.nodes.at(1).jobs, ElementsAre("whole"));
  EXPECT_EQ(list.nodes.at(1).used, (scheduler::Resources{4, int64_t{1} << 30, 2}));
}

TEST_F(ServicePartsTest, WhatNoNodeHasIsRefusedWithWhatThereIs) {
  constexpr char kOrWhole[] =
      ": ask for no more, or leave resources.properties.tutti out to have whole nodes";
  EXPECT_EQ(Refused("cpus: 5"),
            absl::StrCat("job.yml:6: resources.properties.tutti.cpus asks for 5, and the largest "
                         "node has 4",
                         kOrWhole));
  EXPECT_EQ(Refused("memory: 2GiB"),
            absl::StrCat("job.yml:6: resources.properties.tutti.memory asks for 2.0 GiB, and the "
                         "largest node has 1.0 GiB",
                         kOrWhole));
  EXPECT_THAT(Refused("gpus: 3"), HasSubstr("tutti.gpus asks for 3, and the largest node has 2"));
  EXPECT_THAT(Refused("cpus: 1", 3), HasSubstr("the cluster has 2 nodes"));
}

// Jobs come, end and are cancelled, and the service comes back, in any order.
TEST_F(ServicePartsTest, NoProcessorAndNoGpuIsEverGivenTwice) {
  std::minstd_rand random(30);
  const auto upto = [&](int most) { return static_cast<int>(random() % (most + 1)); };
  std::vector<std::string> jobs;
  int shared = 0;
  for (int round = 0; round < 60; ++round) {
    const std::string part = absl::StrCat("cpus: ", 1 + upto(2), ", gpus: ", upto(1));
    jobs.push_back(Submit(absl::StrCat("j", round), upto(5) == 0 ? "" : part, 1 + upto(1)));
    if (upto(2) == 0) Open();
    std::vector<std::string> running;
    for (const std::string& job : jobs) {
      if (HasNodes(job)) running.push_back(job);
    }
    if (upto(1) == 0 && !running.empty()) Cancel(running[random() % running.size()]);
    world_.Step();
    std::map<std::string, std::set<std::string>> used;
    std::map<std::string, int> holders;
    for (const std::string& job : jobs) {
      if (!HasNodes(job)) continue;
      const size_t nodes = PlanOf(job).nodes.size();
      for (size_t i = 0; i < nodes; ++i) {
        const spec::LaunchPlan plan = PlanOf(job, static_cast<int>(i));
        const std::string& node = plan.node().name;
        ++holders[node];
        const std::vector<int> cores = plan.has_part() ? plan.cores : world_.engine().cores;
        const auto gpus = plan.has_part() ? plan.gpus : world_.engine().gpus;
        for (const int core : cores) {
          ASSERT_TRUE(used[node].insert(absl::StrCat("core ", core)).second) << round;
        }
        for (const std::string& gpu : gpus) ASSERT_TRUE(used[node].insert(gpu).second) << round;
      }
    }
    for (const auto& [node, count] : holders) shared += count > 1 ? 1 : 0;
  }
  EXPECT_GT(shared, 20);
}

}  // namespace
}  // namespace tutti::service
