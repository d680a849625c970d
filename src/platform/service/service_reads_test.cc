// Users whose reads of the store take long hold up no step of a job, no call that changes one and
// no launcher.
// Covers: flow/child_insertion.cc, flow/flow_children.cc, allocation/local_scheduler.cc,
// allocation/cluster_queue.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "base/test_patience.h"
#include "platform/service/cluster_for_tests.h"
#include "platform/service/world_for_tests.h"
#include "platform/store/held_reads_for_tests.h"

namespace tutti::service {
namespace {

using store::JobState;

// Each trial names a secret, which is looked for in the store before the trial is made.
constexpr char kSweepWithSecrets[] = R"(type: sweep
name: s
trial:
  command: echo ${{search_space.x}}
  resources: {properties: {tutti: {secrets: {TOKEN: hub}}}}
sampling_algorithm: grid
search_space:
  x: {type: choice, values: [1, 2, 3, 4]}
objective: {goal: minimize, primary_metric: loss}
limits: {max_concurrent_trials: 2}
)";

// A service all of whose connections that read are in use.
class HeldReadsTest : public ::testing::Test {
 protected:
  void Hold() {
    World& world = *world_;
    world.Open({.busy_timeout = absl::Milliseconds(20), .on_read = [this] { reads_.Hold(); }});
    for (int i = 0; i < 6; ++i) {
      reads_.Begin([&] { world.store().NonTerminalJobs().IgnoreError(); });
    }
    base::AwaitPatiently(absl::Seconds(20), [&] { return reads_.held() == 6; });
    for (int i = 0; i < 2; ++i) reads_.Begin([&] { world.store().GetJob("j").IgnoreError(); });
    base::AwaitPatiently(absl::Seconds(20), [&] { return reads_.held() == 8; });
    ASSERT_TRUE(absl::IsUnavailable(world.store().GetJob("j").status()));
  }

  base::TemporaryDirectory folder_;
  FakeCluster cluster_;
  std::unique_ptr<World> world_;
  store::HeldReads reads_;
};

TEST_F(HeldReadsTest, ASweepMakesItsTrialsAndTakesTheirEnds) {
  world_ = std::make_unique<World>(folder_.path());
  World& world = *world_;
  ASSERT_TRUE(world.service().SetSecret("hub", "hunter22").ok());
  const auto submitted = world.Submit(kSweepWithSecrets);
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  Hold();
  EXPECT_TRUE(world.StepUntil([&] { return world.engine().Starts().size() == 4; }));
  EXPECT_TRUE(world.StepUntil([&] { return world.engine().Allocations().empty(); }));
  for (int i = 0; i < 5; ++i) world.Step();
  EXPECT_EQ(reads_.held(), 8);
  reads_.End();
  EXPECT_EQ(world.History("s.trial-4"),
            "Queued Provisioning Preparing Starting Running Finalizing Completed");
  EXPECT_TRUE(IsEnd(world.State("s"))) << world.Reason("s");
}

TEST_F(HeldReadsTest, AJobIsCanceledAndItsLaunchersAreHeard) {
  world_ = std::make_unique<World>(folder_.path(), Script{{0, nullptr}, {1, nullptr}});
  World& world = *world_;
  ASSERT_TRUE(world.Submit().ok());
  ASSERT_TRUE(world.StepUntilState("j", JobState::kRunning));
  Hold();
  const auto canceled = world.service().Cancel("j");
  ASSERT_TRUE(canceled.ok()) << canceled.status();
  EXPECT_EQ(canceled->record.last.state, JobState::kFinalizing);
  EXPECT_TRUE(world.StepUntil([&] { return world.engine().Allocations().empty(); }));
  reads_.End();
  EXPECT_EQ(world.State("j"), JobState::kCanceled);
}

TEST_F(HeldReadsTest, AJobThatAClusterHasGivenNodesIsPlaced) {
  ASSERT_TRUE(base::WriteFileAtomic(folder_.path() / "site.yml",
                                    "computes:\n  hpc: {type: slurm, folder: /shared}\n")
                  .ok());
  world_ = std::make_unique<World>(folder_.path(), Script{}, 2, &cluster_);
  World& world = *world_;
  ASSERT_TRUE(world.Submit(absl::StrCat(kJobFile, "compute: hpc\n")).ok());
  ASSERT_TRUE(world.StepUntil([&] { return !cluster_.allocations().empty(); }));
  Hold();
  cluster_.runs = true;
  EXPECT_TRUE(world.StepUntil([&] {
    const auto told = world.service().ReportEvents("j.1", 0, 1, {R"({"kind": "preparing"})"});
    return told.ok() && told->acknowledged == 1;
  }));
  reads_.End();
  EXPECT_EQ(world.service().GetJob("j")->nodes, (std::vector<std::string>{"n1", "n2"}));
}

}  // namespace
}  // namespace tutti::service
