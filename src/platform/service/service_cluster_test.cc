// Jobs of engines that schedule for themselves.
// Covers: allocation/cluster_queue.cc, allocation/observer.cc, jobs/engines.cc, jobs/job_views.cc,
// attempt/job_placement.cc.
#include <gmock/gmock.h>

#include <atomic>
#include <functional>
#include <thread>
#include <utility>

#include "absl/strings/str_replace.h"
#include "absl/synchronization/notification.h"
#include "base/status.h"
#include "base/test_patience.h"
#include "platform/engine/deferred_engine.h"
#include "platform/service/cluster_for_tests.h"
#include "platform/service/health/cluster_cordons.h"
#include "platform/service/world_for_tests.h"

namespace tutti::service {
namespace {

using store::JobState;
using ::testing::ElementsAre;

class ServiceClusterTest : public ::testing::Test {
 protected:
  ServiceClusterTest() {
    DiskEngine::Put(folder_.path() / "site.yml",
                    "computes: {hpc: {type: slurm, folder: ./shared}}\n");
  }
  const base::TemporaryDirectory folder_;
  FakeCluster cluster_;
  World world_{folder_.path(), {}, 2, &cluster_};
};

TEST_F(ServiceClusterTest, HandsOverAJobThatCameUnderTheNameOfOneThatWasJustHandedOver) {
  const std::string file = absl::StrCat(kJobFile, "compute: hpc\n");
  cluster_.during_start = [&] {
    cluster_.during_start = nullptr;
    EXPECT_EQ(world_.service().Cancel("j").status(), absl::OkStatus());
    EXPECT_EQ(world_.service().Delete("j"), absl::OkStatus());
    EXPECT_EQ(world_.Submit(file).status(), absl::OkStatus());
  };
  ASSERT_EQ(world_.Submit(file).status(), absl::OkStatus());
  world_.Step();
  world_.Step();
  EXPECT_THAT(cluster_.allocations(), ElementsAre("j.1", "j.2"));
}

TEST_F(ServiceClusterTest, OfJobsThatAClusterOrdersItKnowsNoPlace) {
  ASSERT_EQ(world_.Submit(absl::StrCat(kJobFile, "compute: hpc\n")).status(), absl::OkStatus());
  world_.Step();
  EXPECT_FALSE(world_.service().GetJob("j")->queue.has_value());
  const auto queues = world_.service().ListQueues(9);
  ASSERT_EQ(queues->size(), 1);
  EXPECT_EQ(queues->at(0).compute, "hpc");
  EXPECT_EQ(queues->at(0).count, 1);
  EXPECT_EQ(queues->at(0).jobs.at(0).summary.id, "j");
  EXPECT_EQ(queues->at(0).jobs.at(0).place, std::nullopt);
}

TEST_F(ServiceClusterTest, RaysHeadHasThePortOfItsFileOrOneThatNoOtherJobOfANodeHas) {
  const std::string file = "type: command\ncommand: x\ncompute: hpc\ndistribution: {type: ray";
  ASSERT_EQ(world_.Submit(absl::StrCat(file, "}\n")).status(), absl::OkStatus());
  world_.Step();
  EXPECT_EQ(cluster_.plan.start_port, cluster_.plan.master_port + 1);
  ASSERT_EQ(world_.Submit(absl::StrCat(file, ", port: 7000}\n")).status(), absl::OkStatus());
  world_.Step();
  EXPECT_EQ(cluster_.plan.start_port, 7000);
}

TEST_F(ServiceClusterTest, OfAJobThatTheClusterTookBackNothingIsConcludedBeforeItSaysThatItIsLost) {
  ASSERT_EQ(world_.Submit(absl::StrCat(kJobFile, "compute: hpc\n")).status(), absl::OkStatus());
  world_.Step();
  cluster_.runs = true;
  ASSERT_TRUE(world_.StepUntil([&] { return world_.State("j") == JobState::kProvisioning; }));
  cluster_.runs = false;
  for (int i = 0; i < 300; ++i) world_.Step();  // a minute
  EXPECT_EQ(world_.State("j"), JobState::kProvisioning);
  cluster_.runs = cluster_.dead = true;
  EXPECT_TRUE(world_.StepUntil([&] { return world_.State("j") == JobState::kFailed; }));
}

// Tests what a launcher says of a node that it found to be ill.
class IllClusterNodeTest : public ServiceClusterTest {
 protected:
  IllClusterNodeTest() {
    cluster_.nodes = std::vector<engine::Node>{{.name = "n1"}, {.name = "n2"}};
  }
  // The job "j" is at work on n1 and n2.
  void Place(const std::string& more = "") {
    ASSERT_EQ(world_.Submit(absl::StrCat(kJobFile, "compute: hpc\n", more)).status(),
              absl::OkStatus());
    world_.Step();
    cluster_.runs = true;
    ASSERT_TRUE(world_.StepUntil([&] { return world_.State("j") == JobState::kProvisioning; }));
  }
  void Say(const std::string& allocation, int node, const std::vector<std::string>& lines) {
    ASSERT_TRUE(world_.service().ReportEvents(allocation, node, 1, lines).ok());
  }
  // n1's launcher runs nothing.
  void Refuse(const std::string& allocation) {
    Say(allocation, 0,
        {R"({"kind":"preparing","time":1})",
         R"({"kind":"finished","time":2,"ok":false,"reason":"it is ill: gpu: gone",)"
         R"("ill":"gpu: gone"})"});
    Say(allocation, 1,
        {R"({"kind":"preparing","time":1})", R"({"kind":"prepared","time":2})",
         R"({"kind":"finished","time":3,"ok":false,"told":true,"reason":"told to end"})"});
    cluster_.dead = true;
  }
  NodeStatus First() {
    for (const NodeStatus& node : world_.service().ListNodes().nodes) {
      if (node.compute == "hpc") return node;
    }
    return {};
  }
};

TEST_F(IllClusterNodeTest, IsAvoidedByTheJobThatItRefusedAndByOthersForAWhile) {
  Place();
  Refuse("j.1");
  ASSERT_TRUE(world_.StepUntil([&] { return cluster_.allocations().contains("j.1-2"); }));
  EXPECT_THAT(cluster_.avoid, ElementsAre("n1"));
  const auto events = world_.Events("j");
  EXPECT_THAT(events, testing::Contains(testing::Field(
                          &store::Event::reason,
                          "node n1: it is ill: gpu: gone; it is begun again, attempt 2 of 2")));
  EXPECT_EQ(First().node.state, "cordoned");
  EXPECT_EQ(First().node.reason, "gpu: gone");
  EXPECT_EQ(First().cordoned_by, "check");
  EXPECT_THAT(world_.service().Problems(),
              testing::Contains(testing::HasSubstr("node n1 of compute hpc is ill")));
  const std::string other =
      absl::StrReplaceAll(absl::StrCat(kJobFile, "compute: hpc\n"), {{"name: j", "name: k"}});
  cluster_.avoid.clear();
  ASSERT_EQ(world_.Submit(other).status(), absl::OkStatus());
  world_.Step();
  EXPECT_THAT(cluster_.avoid, ElementsAre("n1"));
  EXPECT_TRUE(world_.service().Uncordon("hpc", "n1").ok());
  EXPECT_EQ(First().cordoned_by, "");
  EXPECT_FALSE(world_.service().Uncordon("hpc", "n1").ok()) << "the rest is Slurm's";
}

TEST_F(IllClusterNodeTest, IsLookedAtAgainAfterAWhile) {
  Place();
  Refuse("j.1");
  ASSERT_TRUE(world_.StepUntil([&] { return First().cordoned_by == "check"; }));
  world_.clock().Advance(ClusterCordons::kLimit);
  EXPECT_TRUE(world_.StepUntil([&] { return First().cordoned_by.empty(); }));
}

TEST_F(IllClusterNodeTest, EndsAJobThatEveryAttemptWasRefused) {
  Place();
  for (const std::string allocation : {"j.1", "j.1-2", "j.1-3"}) {
    ASSERT_TRUE(world_.StepUntil([&] {
      return cluster_.allocations().contains(allocation) &&
             world_.State("j") == JobState::kProvisioning;
    })) << allocation;
    cluster_.dead = false;
    Refuse(allocation);
  }
  EXPECT_TRUE(world_.StepUntil([&] { return world_.State("j") == JobState::kFailed; }));
  EXPECT_THAT(world_.Reason("j"), testing::HasSubstr("node n1: it is ill: gpu: gone"));
}

TEST_F(ServiceClusterTest, ListsTheNodesOfAllComputesThatCanTellThem) {
  cluster_.nodes = std::vector<engine::Node>{{.name = "n1", .state = "unusable"}};
  const NodeList all = world_.service().ListNodes();
  ASSERT_EQ(all.nodes.size(), 3u);
  EXPECT_EQ(all.nodes[0].compute, "local");
  EXPECT_EQ(all.nodes[2].compute, "hpc");
  EXPECT_EQ(all.nodes[2].node.state, "unusable");
  EXPECT_THAT(all.warnings, ElementsAre());
  cluster_.nodes = absl::UnavailableError("no answer");
  const NodeList rest = world_.service().ListNodes();
  EXPECT_EQ(rest.nodes.size(), 2u);
  EXPECT_THAT(rest.warnings, ElementsAre("the nodes of compute hpc are not known: no answer"));
}

TEST(ServiceWithoutItsCluster, SaysOfItsJobsThatTheirComputeIsGone) {
  const base::TemporaryDirectory folder;
  DiskEngine::Put(folder.path() / "site.yml", "computes: {hpc: {type: slurm, folder: ./shared}}\n");
  const std::string file = absl::StrCat(kJobFile, "compute: hpc\n");
  FakeCluster cluster;
  {
    World world(folder.path(), {}, 2, &cluster);
    ASSERT_TRUE(world.Submit(file).ok());
    world.Step();
    cluster.runs = true;
    ASSERT_TRUE(world.StepUntil([&] { return world.State("j") != store::JobState::kQueued; }));
    ASSERT_TRUE(world.Submit(absl::StrReplaceAll(file, {{"name: j", "name: k"}})).ok());
  }
  World world(folder.path());
  world.Step();
  const std::string gone = "site.yml has no compute hpc: put it back and start the service anew";
  EXPECT_EQ(world.service().Cancel("j")->reason, gone);
  EXPECT_EQ(world.service().GetJob("k")->reason, absl::StrCat("waits: ", gone));
  std::vector<std::string> reasons;
  const auto jobs = world.service().ListSummaries({});
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  for (const JobSummary& job : *jobs) reasons.push_back(job.reason);
  EXPECT_THAT(reasons, testing::UnorderedElementsAre(gone, absl::StrCat("waits: ", gone)));
}

TEST(ServiceWithAClusterThatCannotBeOpened, TakesItsJobsUpOnceItCan) {
  const base::TemporaryDirectory folder;
  DiskEngine::Put(folder.path() / "site.yml", "computes: {hpc: {type: slurm, folder: ./shared}}\n");
  const std::string file = absl::StrCat(kJobFile, "compute: hpc\n");
  const auto named = [&](absl::string_view name) {
    return absl::StrReplaceAll(file, {{"name: j", absl::StrCat("name: ", name)}});
  };
  FakeCluster before;
  {
    World world(folder.path(), {}, 2, &before);
    ASSERT_TRUE(world.Submit(file).ok());
    world.Step();
    before.runs = true;
    ASSERT_TRUE(world.StepUntil([&] { return world.State("j") == JobState::kProvisioning; }));
    ASSERT_TRUE(world.Submit(named("k")).ok());
  }
  absl::Status failure = absl::FailedPreconditionError("another service holds it");
  FakeCluster* cluster = nullptr;
  const auto open = [&]() -> absl::StatusOr<std::unique_ptr<engine::Engine>> {
    TUTTI_RETURN_IF_ERROR(failure);
    auto opened = std::make_unique<FakeCluster>();
    opened->runs = true;
    cluster = opened.get();
    return opened;
  };
  base::ManualClock clock;
  engine::DeferredEngine deferred({.open = open, .patience = absl::ZeroDuration()}, &clock);
  World world(folder.path(), {}, 2, &deferred);
  for (int i = 0; i < 100; ++i) world.Step();
  const std::string why =
      "compute hpc cannot be used: another service holds it (since 1970-01-01 00:00 UTC; it is "
      "tried again within 1m)";
  EXPECT_EQ(world.State("j"), JobState::kProvisioning);
  EXPECT_EQ(world.Reason("j"), why);
  EXPECT_EQ(world.Reason("k"), absl::StrCat("waits: ", why));
  EXPECT_THAT(world.service().Problems(), ElementsAre(why));
  const auto late = world.Submit(named("l"));
  ASSERT_TRUE(late.ok()) << late.status();
  EXPECT_THAT(late->record.job.warnings,
              ElementsAre(absl::StrCat(why, "; what runs there waits until it can")));
  EXPECT_EQ(world.service().Cancel("l")->record.last.state, JobState::kCanceled);

  failure = absl::OkStatus();
  clock.Advance(absl::Seconds(1));
  ASSERT_TRUE(world.StepUntil([&] { return world.State("k") == JobState::kProvisioning; }))
      << world.Reason("k");
  EXPECT_THAT(cluster->allocations(), ElementsAre("j.1", "k.2"));
  EXPECT_EQ(world.State("j"), JobState::kProvisioning);
  EXPECT_NE(world.Reason("j"), why);
  EXPECT_THAT(world.service().Problems(), ElementsAre());
}

// What a cluster's node reports survives a loss of power of this machine.
class ClusterReportTest : public ServiceClusterTest {
 protected:
  void Begin(std::function<absl::Status()> on_sync) {
    world_.Open({.on_sync = std::move(on_sync)});
    ASSERT_TRUE(world_.Submit(absl::StrCat(kJobFile, "compute: hpc\n")).ok());
    world_.Step();
    cluster_.runs = true;
    ASSERT_TRUE(world_.StepUntil([&] { return world_.State("j") == JobState::kProvisioning; }));
  }
  absl::StatusOr<Service::Acknowledgement> Report() {
    return world_.service().ReportEvents("j.1", 0, next_, {R"({"kind":"preparing","time":1})"});
  }

  int64_t next_ = 1;
};

TEST_F(ClusterReportTest, HoldsNobodyUpWhileItWaitsForTheDisk) {
  absl::Notification waits, goes_on;
  std::atomic<bool> hangs = false, answered = false;
  Begin([&] {
    if (!hangs.exchange(false)) return absl::OkStatus();
    waits.Notify();
    goes_on.WaitForNotificationWithTimeout(base::Patient(absl::Seconds(20)));
    return absl::OkStatus();
  });
  hangs = true;
  absl::StatusOr<Service::Acknowledgement> told;
  std::thread launcher([&] {
    told = Report();
    answered = true;
  });
  EXPECT_TRUE(waits.WaitForNotificationWithTimeout(base::Patient(absl::Seconds(20))));
  EXPECT_EQ(world_.State("j"), JobState::kProvisioning);
  std::atomic<bool> canceled = false;
  std::thread user([&] {
    EXPECT_TRUE(world_.service().Cancel("j").ok());
    canceled = true;
  });
  // It is decided, which its launchers may know, before the disk has it, which its user waits for.
  const auto decided = [&] {
    return world_.service().MayGo("j.1", 0).value() == Service::Go::kNever;
  };
  while (!decided()) std::this_thread::yield();
  EXPECT_FALSE(answered);
  EXPECT_FALSE(canceled);
  goes_on.Notify();
  launcher.join();
  user.join();
  EXPECT_EQ(told->acknowledged, next_);
}

// Its launcher would end, and the job would wait for it again after a loss of power.
TEST_F(ClusterReportTest, IsNotToldThatItsJobIsOverBeforeTheDiskHasIt) {
  bool fails = false;
  const absl::Status failure = absl::UnavailableError("the device fails");
  world_.Open({.on_sync = [&] { return fails ? failure : absl::OkStatus(); }});
  ASSERT_TRUE(world_.Submit(absl::StrCat(kJobFile, "compute: hpc\n")).ok());
  world_.Step();
  fails = true;
  Service& service = world_.service();
  EXPECT_EQ(service.Cancel("j").status(), failure);
  const auto told = [&] {
    return std::vector<absl::Status>{
        service.MayGo("j.1", 0).status(),
        service.OnNewsOfAllocation("j.1", 0, [] {}).status(),
        service.CheckUnderWay("j.1"),
        service.AppendOutput("j.1", 0, 0, LogStream::kStdout, 0, "x").status(),
        service.ReceiveFile("j.1", 0, "outputs/x", 0, "").status(),
        service.ReceiveFiles("j.1", 0, {}, "").status(),
        service.JobOfLauncher("j.1", 0).status(),
        Report().status()};
  };
  EXPECT_THAT(told(), testing::Each(failure));
  fails = false;
  EXPECT_THAT(told(), testing::Each(testing::Truly(absl::IsAborted)));
}

TEST_F(ClusterReportTest, IsNotAcknowledgedBeforeTheDiskHasItAndIsKeptOnce) {
  bool fails = false;
  Begin([&] { return fails ? absl::UnavailableError("the device fails") : absl::OkStatus(); });
  fails = true;
  EXPECT_EQ(Report().status(), absl::UnavailableError("the device fails"));
  EXPECT_EQ(Report().status(), absl::UnavailableError("the device fails"));
  world_.Open();  // the launcher asks the next service
  EXPECT_EQ(Report()->acknowledged, next_);
  ++next_;
  EXPECT_EQ(Report()->acknowledged, next_);
}

}  // namespace
}  // namespace tutti::service
