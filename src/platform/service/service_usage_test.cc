// Tests what launchers tell of what a job's processes use, beside what they are there for.
// Covers: launcher_reports.cc, allocation/job_output.cc, service_core.cc.
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
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

TEST_F(ServiceUsageTest, SaysThatARankReportsToWaitForDataWhileItRuns) {
  world_.launchers().script() = {{0, nullptr}, {1, nullptr}};
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kRunning));
  EXPECT_TRUE(world_.service().UsageOf("j", {})->problems.empty());
  std::string reports;
  for (int second = 0; second <= 300; second += 5) {
    const absl::Time time = world_.clock().Now() - absl::Seconds(300 - second);
    absl::StrAppend(&reports, R"({"event": "step", "step": )", second + 1, R"(, "time": )",
                    absl::ToUnixSeconds(time), R"(, "data": 0.8, "forward": 0.1, "backward": 0.1,)",
                    R"( "communication": 0, "optimizer": 0, "other": 0})", "\n");
  }
  const std::filesystem::path logs = folder_.path() / "jobs/j/logs";
  ASSERT_TRUE(base::MakeDirectories(logs).ok());
  ASSERT_TRUE(base::WriteFileAtomic(logs / "rank-0.metrics", reports).ok());
  const auto problems = world_.service().UsageOf("j", {})->problems;
  ASSERT_EQ(problems.size(), 1);
  EXPECT_EQ(problems[0].substr(0, problems[0].find(':')),
            "rank 0 has waited for data for 80 % of the last 5 minutes");
  EXPECT_TRUE(world_.service().UsageOf("j", {.rank = 1})->problems.empty()) << "it reports nothing";
  ASSERT_TRUE(world_.service().Cancel("j").ok());
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_TRUE(world_.service().UsageOf("j", {})->problems.empty()) << "it does not run any more";
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

TEST_F(ServiceUsageTest, SaysHowEachRankStandsAlsoAfterARestartAndOnceTheJobHasEnded) {
  using enum RankState::Kind;
  const auto kinds = [&] {
    std::vector<RankState::Kind> all;
    const auto ranks = world_.service().RanksOf("j", std::nullopt);
    EXPECT_TRUE(ranks.ok()) << ranks.status();
    if (ranks.ok()) {
      for (const RankState& rank : *ranks) all.push_back(rank.kind);
    }
    return all;
  };
  world_.launchers().script() = {{0, nullptr}, {1, {{"code", 0}}}};
  ASSERT_TRUE(world_.Submit().ok());
  EXPECT_EQ(kinds(), (std::vector{kNotStarted, kNotStarted}));
  ASSERT_TRUE(world_.StepUntil([&] { return kinds() == std::vector{kRunning, kEnded}; }));
  EXPECT_EQ(world_.State("j"), JobState::kRunning);
  world_.Open();
  EXPECT_EQ(kinds(), (std::vector{kRunning, kEnded}));
  const auto one = world_.service().RanksOf("j", 1);
  ASSERT_EQ(one->size(), 1);
  EXPECT_EQ(one->at(0).rank, 1);
  ASSERT_TRUE(world_.service().Cancel("j").ok());
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_EQ(kinds(), (std::vector{kEnded, kEnded}));
  EXPECT_EQ(world_.service().RanksOf("j", 0)->at(0).signal, 15) << "by the service's stop";
  EXPECT_TRUE(absl::IsNotFound(world_.service().RanksOf("none", std::nullopt).status()));
}

}  // namespace
}  // namespace tutti::service
