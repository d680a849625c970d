// Jobs that are begun again after the loss of a node.
// Covers: jobs/next_attempt.cc, allocation/cluster_queue.cc, allocation/job_progress.cc.
#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "platform/service/cluster_for_tests.h"
#include "platform/service/world_for_tests.h"

namespace tutti::service {
namespace {

using store::JobState;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

const std::string kWithRetries = absl::StrCat(kJobFile, "retry_settings: {max_retries: 1}\n");
const Script kBothRun = {{0, nullptr}, {1, nullptr}};

class RetryTest : public ::testing::Test {
 protected:
  // Its nodes' launchers at work, the second of them dies.
  void LoseANode(const std::string& allocation) {
    ASSERT_TRUE(world_.StepUntil([&] {
      return world_.State("j") == JobState::kRunning &&
             world_.engine().Allocations().back() == allocation;
    }));
    world_.launchers().Kill(allocation, 1);
  }
  spec::LaunchPlan PlanOf(const std::string& allocation, int node) {
    const auto text =
        base::ReadFile(world_.engine().root() / allocation / absl::StrCat("plan-", node));
    return *spec::LaunchPlanFromJson(text.value());
  }

  const base::TemporaryDirectory folder_;
  World world_{folder_.path(), kBothRun};
};

TEST_F(RetryTest, AJobThatLostANodeIsQueuedAgainAndRunsOnce) {
  ASSERT_TRUE(world_.Submit(kWithRetries).ok());
  LoseANode("j.1");
  ASSERT_TRUE(world_.StepUntil([&] { return world_.engine().Allocations().back() == "j.1-2"; }));
  EXPECT_EQ(PlanOf("j.1-2", 1).attempt, 2);
  EXPECT_THAT(PlanOf("j.1-2", 1).former_directory, HasSubstr("scratch/j.1"));
  // What the second attempt takes over is there until it has it.
  EXPECT_THAT(world_.engine().Allocations(), ElementsAre("j.1", "j.1-2"));
  world_.launchers().script().clear();
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_EQ(world_.State("j"), JobState::kCompleted);
  EXPECT_EQ(world_.History("j"),
            "Queued Provisioning Preparing Starting Running Finalizing "
            "Queued Provisioning Preparing Starting Running Finalizing Completed");
  EXPECT_THAT(world_.engine().Starts(), ElementsAre("j.1 0", "j.1 1", "j.1-2 0", "j.1-2 1"));
  const auto events = world_.Events("j");
  EXPECT_EQ(events[6].reason,
            "launcher on node n2 died (it was killed); it is begun again, attempt 2 of 2");
}

TEST_F(RetryTest, ItsLogHasWhatEachAttemptPrinted) {
  ASSERT_TRUE(world_.Submit(kWithRetries).ok());
  LoseANode("j.1");
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kFinalizing));
  world_.Open();  // the service dies meanwhile
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kQueued));
  world_.Open();
  world_.launchers().script().clear();
  ASSERT_TRUE(world_.StepUntilOver("j"));
  std::vector<std::string> told = world_.FollowerOutput("j");
  std::erase_if(told, [](const std::string& item) { return item[0] != '0'; });
  EXPECT_THAT(told, ElementsAre("0:rank 0 begins", "0:rank 0 ends", "0:rank 0 last",
                                "0:rank 0 begins", "0:rank 0 ends", "0:rank 0 last"));
}

TEST_F(RetryTest, WhenItsRetriesAreUsedUpItFailsWithItsOneLine) {
  ASSERT_TRUE(world_.Submit(kWithRetries).ok());
  LoseANode("j.1");
  LoseANode("j.1-2");
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_EQ(world_.State("j"), JobState::kFailed);
  EXPECT_EQ(world_.Reason("j"), "launcher on node n2 died (it was killed)");
}

TEST_F(RetryTest, AJobThatFailsByItselfIsNotBegunAgain) {
  world_.launchers().script() = {{0, {{"code", 3}}}};
  ASSERT_TRUE(world_.Submit(kWithRetries).ok());
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_EQ(world_.State("j"), JobState::kFailed);
  EXPECT_EQ(world_.engine().Starts().size(), 2u);
}

TEST_F(RetryTest, ACancelledJobIsNotBegunAgain) {
  ASSERT_TRUE(world_.Submit(kWithRetries).ok());
  LoseANode("j.1");
  ASSERT_TRUE(world_.service().Cancel("j").ok());
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_EQ(world_.State("j"), JobState::kCanceled);
  EXPECT_EQ(world_.engine().Starts().size(), 2u);
}

TEST_F(RetryTest, OneThatIsCancelledWhileItsLossIsClearedUpIsNotBegunAgain) {
  ASSERT_TRUE(world_.Submit(kWithRetries).ok());
  LoseANode("j.1");
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kFinalizing));
  ASSERT_TRUE(world_.service().Cancel("j").ok());
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_EQ(world_.State("j"), JobState::kCanceled);
  EXPECT_EQ(world_.engine().Starts().size(), 2u);
}

TEST_F(RetryTest, AnAttemptThatIsLostBeforeItTookOverLeavesThatToTheNext) {
  ASSERT_TRUE(world_.Submit(absl::StrCat(kJobFile, "retry_settings: {max_retries: 2}\n")).ok());
  LoseANode("j.1");
  ASSERT_TRUE(world_.StepUntil([&] {
    return world_.State("j") == JobState::kProvisioning &&
           world_.engine().Allocations().back() == "j.1-2";
  }));
  world_.launchers().Kill("j.1-2", 0);
  world_.launchers().Kill("j.1-2", 1);
  world_.Open();
  ASSERT_TRUE(world_.StepUntil([&] { return world_.engine().Allocations().back() == "j.1-3"; }));
  EXPECT_EQ(PlanOf("j.1-3", 1).attempt, 3);
  EXPECT_THAT(PlanOf("j.1-3", 1).former_directory, EndsWith("/j.1"));
  EXPECT_THAT(world_.engine().Allocations(), Contains("j.1"));
}

TEST_F(RetryTest, OneThatIsCancelledWhileItWaitsAgainLeavesNothing) {
  ASSERT_TRUE(world_.Submit(kWithRetries).ok());
  LoseANode("j.1");
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kQueued));
  ASSERT_TRUE(world_.service().Cancel("j").ok());
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_EQ(world_.State("j"), JobState::kCanceled);
}

const std::string kOnTheCluster = kWithRetries + "compute: hpc\n";

class QueuedRetryTest : public ::testing::Test {
 protected:
  QueuedRetryTest() {
    DiskEngine::Put(folder_.path() / "site.yml",
                    "computes: {hpc: {type: slurm, folder: ./shared}}\n");
  }
  const base::TemporaryDirectory folder_;
  FakeCluster cluster_;
  World world_{folder_.path(), {}, 2, &cluster_};
};

TEST_F(QueuedRetryTest, OneWhoseNodesNeverCameUpIsQueuedAgain) {
  cluster_.losses = 1;
  ASSERT_EQ(world_.Submit(kOnTheCluster).status(), absl::OkStatus());
  ASSERT_TRUE(
      world_.StepUntil([&] { return cluster_.allocations() == std::set<std::string>{"j.1-2"}; }));
  EXPECT_EQ(world_.History("j"), "Queued Queued");
  EXPECT_EQ(world_.Events("j").back().reason,
            "its nodes did not boot; it is begun again, attempt 2 of 2");
  world_.Open();
  world_.Step();
  EXPECT_EQ(world_.History("j"), "Queued Queued");
  EXPECT_THAT(cluster_.allocations(), ElementsAre("j.1-2"));
}

TEST_F(QueuedRetryTest, ANodeThatIsNotHeardOfAgainIsLostAlsoWhereTheClusterHasNotNoticed) {
  cluster_.runs = true;
  ASSERT_EQ(world_.Submit(kOnTheCluster).status(), absl::OkStatus());
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kProvisioning));
  const auto say = [&](int node, int64_t first, const std::vector<std::string>& events) {
    EXPECT_TRUE(world_.service().ReportEvents("j.1", node, first, events).ok());
    world_.Step();
  };
  for (int node : {0, 1}) {
    say(node, 1,
        {R"({"kind": "prepared"})", absl::StrCat(R"({"kind": "started", "rank": )", node, "}")});
  }
  EXPECT_EQ(world_.State("j"), JobState::kRunning);
  say(0, 3,
      {R"({"kind": "exited", "rank": 0, "code": 3, "last_error": "lost rank 1"})",
       R"({"kind": "finished"})"});
  EXPECT_TRUE(world_.StepUntilState("j", JobState::kFinalizing));  // a moment after it was heard
  world_.clock().Advance(absl::Minutes(3));
  EXPECT_TRUE(world_.StepUntilState("j", JobState::kQueued));
  EXPECT_EQ(world_.Events("j").back().reason,
            "launcher on node n2 died (it was told to stop and has not been heard of since); it is "
            "begun again, attempt 2 of 2");
}

// Which says nothing against a node, and costs no retry.
TEST_F(QueuedRetryTest, OneThatFoundTheDiskOfAllNodesFullWaitsForRoomAndTakesAnyNode) {
  cluster_.runs = cluster_.dead = cluster_.disk_full = true;
  int refused = 0;
  cluster_.during_start = [&] {
    if (world_.State("j") != JobState::kQueued || world_.Events("j").size() == 1) return;
    cluster_.fail_start = absl::ResourceExhaustedError("the disk is full");
    ++refused;
  };
  ASSERT_EQ(world_.Submit(absl::StrCat(kJobFile, "compute: hpc\n")).status(), absl::OkStatus());
  ASSERT_TRUE(world_.StepUntil([&] {
    world_.clock().Advance(absl::Seconds(2));
    return refused > 2;
  }));
  EXPECT_EQ(world_.Events("j").back().reason,
            "the disk was full; it is begun again, attempt 2 of 2");
  EXPECT_EQ(world_.State("j"), JobState::kQueued);
  EXPECT_EQ(world_.Reason("j"), "waits: the disk is full");
  cluster_.dead = cluster_.disk_full = false;
  cluster_.during_start = nullptr;
  cluster_.fail_start = absl::OkStatus();
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kProvisioning));
  EXPECT_TRUE(cluster_.avoid.empty());
}

// As a quota may be, of which the service sees nothing.
TEST_F(QueuedRetryTest, OneWhoseLaunchersFindTheDiskFullTimeAndAgainWaitsAndKeepsItsRetries) {
  cluster_.runs = cluster_.dead = cluster_.disk_full = true;
  ASSERT_EQ(world_.Submit(kOnTheCluster).status(), absl::OkStatus());
  const auto again = [&](int attempt) {
    return world_.StepUntil([&] {
      world_.clock().Advance(absl::Seconds(2));
      return world_.Events("j").back().reason ==
             absl::StrCat("the disk was full; it is begun again, attempt ", attempt, " of ",
                          attempt + 1);
    });
  };
  ASSERT_TRUE(again(7)) << world_.Events("j").back().reason;
  const absl::Duration before = world_.clock().SinceBoot();
  ASSERT_TRUE(again(8)) << world_.Events("j").back().reason;
  EXPECT_GE(world_.clock().SinceBoot() - before, absl::Minutes(2))
      << "it is tried ever more rarely";
  world_.Open();
  ASSERT_TRUE(again(9));
  cluster_.disk_full = false;
  ASSERT_TRUE(world_.StepUntil([&] {
    world_.clock().Advance(absl::Seconds(2));
    return world_.State("j") == JobState::kFailed;
  }));
  const auto events = world_.Events("j");
  const auto lost = std::count_if(events.begin(), events.end(), [](const store::Event& event) {
    return event.state == JobState::kQueued && !absl::StartsWith(event.reason, "the disk");
  });
  EXPECT_EQ(lost, 2) << "when it was submitted, and its one retry for a node that was lost";
}

// An input that is larger than the disk would fill it at each attempt, for all others too.
TEST_F(QueuedRetryTest, OneWhoseOwnFilesFillTheDiskTimeAndAgainFails) {
  cluster_.runs = true;
  ASSERT_EQ(world_.Submit(absl::StrCat(kJobFile, "compute: hpc\n")).status(), absl::OkStatus());
  const std::string full =
      R"({"kind":"finished","ok":false,"reason":"the disk is full","shared_disk_full":true,)"
      R"("filled_by_job":true})";
  int attempts = 0;
  while (attempts < 20) {
    ASSERT_TRUE(world_.StepUntil([&] {
      world_.clock().Advance(absl::Seconds(2));
      return world_.State("j") == JobState::kProvisioning || IsEnd(world_.State("j"));
    }));
    if (IsEnd(world_.State("j"))) break;
    ++attempts;
    const std::string allocation = *cluster_.allocations().begin();
    for (const int node : {0, 1}) {
      ASSERT_TRUE(world_.service().ReportEvents(allocation, node, 1, {full}).ok());
    }
    cluster_.dead = true;
    ASSERT_TRUE(world_.StepUntil([&] { return cluster_.allocations().empty(); }));
    cluster_.dead = false;
  }
  EXPECT_EQ(world_.State("j"), JobState::kFailed);
  EXPECT_EQ(attempts, 7);
  EXPECT_THAT(world_.Reason("j"), HasSubstr("the disk is full"));
}

TEST_F(QueuedRetryTest, OneThatFoundTheDiskFullCanBeCancelledBeforeItIsQueuedAgain) {
  cluster_.runs = true;
  ASSERT_EQ(world_.Submit(absl::StrCat(kJobFile, "compute: hpc\n")).status(), absl::OkStatus());
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kProvisioning));
  const std::string full =
      R"({"kind":"finished","ok":false,"reason":"the disk is full","shared_disk_full":true})";
  ASSERT_TRUE(world_.service().ReportEvents("j.1", 0, 1, {full}).ok());
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kFinalizing));
  ASSERT_TRUE(world_.service().Cancel("j").ok());
  ASSERT_TRUE(world_.service().ReportEvents("j.1", 1, 1, {full}).ok());
  cluster_.dead = true;
  EXPECT_TRUE(world_.StepUntil([&] {
    world_.clock().Advance(absl::Seconds(2));
    return world_.State("j") == JobState::kCanceled;
  })) << world_.Events("j").back().reason;
}

// Thousands may wait.
TEST_F(QueuedRetryTest, WhileTheDiskOfAllNodesIsFullOneJobIsTriedEverySoOften) {
  int tries = 0;
  cluster_.during_start = [&] { ++tries; };
  cluster_.fail_start = absl::ResourceExhaustedError("the disk is full");
  const auto submit = [&](absl::string_view name) {
    const std::string file =
        absl::StrReplaceAll(kJobFile, {{"name: j", absl::StrCat("name: ", name)}});
    return world_.Submit(absl::StrCat(file, "compute: hpc\n")).status();
  };
  for (const char* name : {"a", "b", "c"}) ASSERT_EQ(submit(name), absl::OkStatus());
  ASSERT_TRUE(world_.StepUntil([&] { return world_.Reason("c") == "waits: the disk is full"; }));
  world_.Step();
  tries = 0;
  for (int i = 0; i < 20; ++i) world_.Step();
  EXPECT_LE(tries, 1);
  ASSERT_EQ(submit("d"), absl::OkStatus());
  world_.Step();
  EXPECT_EQ(world_.Reason("d"), "waits: the disk is full") << "which is said of new ones at once";
  EXPECT_THAT(world_.service().Problems(),
              ElementsAre("compute hpc takes no job: the disk is full"));
  tries = 0;
  world_.clock().Advance(absl::Seconds(6));
  for (int i = 0; i < 20; ++i) world_.Step();
  EXPECT_EQ(tries, 1);
  cluster_.fail_start = absl::OkStatus();
  world_.clock().Advance(absl::Seconds(6));
  ASSERT_TRUE(world_.StepUntil([&] { return cluster_.allocations().size() == 4; }));
  EXPECT_THAT(world_.service().Problems(), ::testing::IsEmpty());
}

// It may be at work, cut off from us.
TEST_F(QueuedRetryTest, OneOfWhichANodeIsNeverHeardOfIsStoppedAndBeginsAgainOnceThatIsGone) {
  cluster_.runs = true;
  ASSERT_EQ(world_.Submit(kOnTheCluster).status(), absl::OkStatus());
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kProvisioning));
  world_.clock().Advance(absl::Minutes(3));
  EXPECT_TRUE(world_.StepUntil([&] { return cluster_.stopped.contains("j.1"); }));
  for (int i = 0; i < 5; ++i) {
    world_.clock().Advance(absl::Seconds(2));
    world_.Step();
  }
  EXPECT_EQ(world_.State("j"), JobState::kFinalizing);
  EXPECT_THAT(cluster_.allocations(), ElementsAre("j.1"));
  cluster_.dead = true;
  EXPECT_TRUE(world_.StepUntil([&] {
    world_.clock().Advance(absl::Seconds(2));
    return world_.State("j") == JobState::kQueued;
  }));
  EXPECT_EQ(world_.Events("j").back().reason,
            "node n1: its launcher has not reported within 2m (does that node reach the service's "
            "address?); it is begun again, attempt 2 of 2");
}

TEST_F(QueuedRetryTest, OneWhoseNodesNeverCameUpFailsOnceItsRetriesAreUsedUp) {
  cluster_.losses = 2;
  ASSERT_EQ(world_.Submit(kOnTheCluster).status(), absl::OkStatus());
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kFailed));
  EXPECT_EQ(world_.Reason("j"), "its nodes did not boot");
  EXPECT_TRUE(world_.StepUntil([&] { return cluster_.allocations().empty(); }));
}

}  // namespace
}  // namespace tutti::service
