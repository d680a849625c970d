// Tests what launchers tell of what a job's processes use, beside what they are there for.
// Covers: launcher_reports.cc, allocation/job_output.cc, service_core.cc.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "base/test_patience.h"
#include "platform/service/world_for_tests.h"

namespace tutti::service {
namespace {

using store::JobState;

class ServiceUsageTest : public ::testing::Test {
 protected:
  absl::StatusOr<absl::Duration> Tell(int node, const std::string& allocation = "j.1") {
    spec::UsageSample sample{.time = world_.clock().Now()};
    sample.cpu = 1;
    sample.ranks = {{.rank = node, .cpu = 1}};
    return world_.service().TakeUsage(allocation, node, {sample}, world_.clock().Now());
  }
  std::string Plan() {
    return base::ReadFile(world_.engine().root() / world_.engine().Allocations().at(0) / "plan-0")
        .value();
  }

  const base::TemporaryDirectory folder_;
  World world_{folder_.path()};
};

TEST_F(ServiceUsageTest, ALauncherThatTellsNothingElseOnceItWasToldToStopIsKilled) {
  world_.launchers().script() = {{0, nullptr}, {1, nullptr}};
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kRunning));
  world_.launchers().silent = true;
  ASSERT_TRUE(world_.service().Cancel("j").ok());
  for (int i = 0; i < 5; ++i) {
    world_.Step();
    world_.clock().Advance(absl::Minutes(1));
    for (const int node : {0, 1}) EXPECT_TRUE(Tell(node).ok());
  }
  world_.Step();
  EXPECT_EQ(world_.engine().kill_calls, 2);
}

TEST_F(ServiceUsageTest, IsThereOnceTheJobHasEnded) {
  world_.launchers().script() = {{0, nullptr}, {1, nullptr}};
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kRunning));
  EXPECT_EQ(*Tell(0), absl::ZeroDuration());
  const auto live = world_.service().UsageOf("j", {});
  ASSERT_TRUE(live.ok());
  EXPECT_TRUE(live->live);
  EXPECT_EQ(live->nodes.at(0).recent.size(), 1);
  ASSERT_TRUE(world_.service().Cancel("j").ok());
  ASSERT_TRUE(world_.StepUntilOver("j"));
  // In memory or in its files: no look has nothing.
  const auto ended = world_.service().UsageOf("j", {});
  ASSERT_TRUE(ended.ok());
  EXPECT_FALSE(ended->live);
  ASSERT_FALSE(ended->nodes.empty());
  EXPECT_EQ(ended->nodes[0].recent.size(), 1);
  EXPECT_TRUE(absl::IsAborted(Tell(0).status()));
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(30), [&] {
    return std::filesystem::exists(folder_.path() / "jobs" / "j" / kUsageFolder / "node-0.recent");
  }));
  world_.Open();
  ASSERT_EQ(world_.service().UsageOf("j", {})->nodes.size(), 1);
}

TEST_F(ServiceUsageTest, IsNotMeasuredWhereTheServiceIsToldSo) {
  world_.launchers().script() = {{0, nullptr}, {1, nullptr}};
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kRunning));
  EXPECT_TRUE(spec::LaunchPlanFromJson(Plan())->measures_usage);
  world_.measures_usage = false;
  world_.Open();
  EXPECT_TRUE(absl::IsNotFound(Tell(0).status())) << "launchers of before stop it, too";
  ASSERT_TRUE(world_.service().Cancel("j").ok());
  ASSERT_TRUE(world_.StepUntilOver("j"));
  ASSERT_TRUE(world_.service().Delete("j").ok());
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kRunning));
  EXPECT_FALSE(spec::LaunchPlanFromJson(Plan())->measures_usage);
  EXPECT_TRUE(world_.service().UsageOf("j", {}).ok());
}

}  // namespace
}  // namespace tutti::service
