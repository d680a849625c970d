// Covers: platform/service/allocation/node_list.h.
#include "platform/service/monitoring/monitoring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "platform/service/world_for_tests.h"

namespace tutti::service {
namespace {

using store::JobState;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class MonitoringTest : public ::testing::Test {
 protected:
  Monitoring Look(const MonitoringLimits& limits = {}) { return world_.service().Monitor(limits); }

  base::TemporaryDirectory folder_;
  World world_{folder_.path()};
};

TEST_F(MonitoringTest, AnIdleServiceHasItsNodesAndNoJobs) {
  const Monitoring seen = Look();
  EXPECT_THAT(seen.computes, ElementsAre(Pair("local", ::testing::_)));
  EXPECT_THAT(seen.computes.at("local").jobs, IsEmpty());
  EXPECT_EQ(seen.computes.at("local").oldest_wait, absl::ZeroDuration());
  ASSERT_EQ(seen.nodes.size(), 2);
  EXPECT_THAT(seen.nodes[0].jobs, IsEmpty());
  EXPECT_FALSE(seen.disk_is_full);
  EXPECT_EQ(seen.problems, 0);
  EXPECT_THAT(seen.computes.at("local").nodes, ElementsAre(Pair("idle", 2)));
  EXPECT_EQ(seen.computes.at("local").used, scheduler::Resources());
}

TEST_F(MonitoringTest, TellsOfTheDiskAndTheStore) {
  world_.Step();
  const int64_t before = Look().writes.transactions;
  ASSERT_TRUE(world_.Submit().ok());
  const Monitoring seen = Look();
  EXPECT_GT(seen.disk.disk, seen.disk.available);
  EXPECT_GT(seen.disk.least, 0);
  EXPECT_GT(seen.writes.transactions, before);
}

TEST_F(MonitoringTest, WhatAJobHasPrintedIsTold) {
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntil([&] {
    const Monitoring seen = Look();
    return !seen.placed.empty() && seen.placed[0].log_bytes > 0;
  }));
}

TEST_F(MonitoringTest, AJobThatRunsHasNodesAndOneThatWaitsGrowsOld) {
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kRunning));
  ASSERT_TRUE(world_.Submit(absl::StrReplaceAll(kJobFile, {{"name: j", "name: later"}})).ok());
  world_.clock().Advance(absl::Seconds(30));
  const Monitoring seen = Look();
  const Monitoring::Compute& local = seen.computes.at("local");
  EXPECT_THAT(local.jobs, ElementsAre(Pair(JobState::kQueued, 1), Pair(JobState::kRunning, 1)));
  EXPECT_EQ(local.oldest_wait, absl::Seconds(30));
  EXPECT_EQ(local.nodes_in_use, 2);
  ASSERT_EQ(seen.placed.size(), 1);
  EXPECT_EQ(seen.placed[0].id, "j");
  EXPECT_EQ(seen.placed[0].state, JobState::kRunning);
  EXPECT_EQ(seen.placed[0].nodes, 2);
  EXPECT_EQ(seen.placed[0].ranks, 2);
  EXPECT_GE(seen.placed[0].ran, absl::Seconds(30));
  EXPECT_THAT(local.nodes, ElementsAre(Pair("running", 2)));
  EXPECT_EQ(local.used, local.has) << "each of both nodes is all its own";
  for (const NodeStatus& node : seen.nodes) EXPECT_THAT(node.jobs, ElementsAre("j"));
}

TEST_F(MonitoringTest, WhatHasEndedIsCountedAndACordonedNodeTold) {
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilOver("j"));
  ASSERT_TRUE(world_.service().Cordon("local", "n1", "to be repaired").ok());
  const Monitoring seen = Look();
  EXPECT_EQ(seen.counts.entered.at(JobState::kCompleted), 1);
  EXPECT_EQ(seen.counts.entered.at(JobState::kQueued), 1);
  EXPECT_GT(seen.counts.runs.sum(), absl::ZeroDuration());
  EXPECT_THAT(seen.computes.at("local").jobs, IsEmpty());
  EXPECT_EQ(seen.nodes[0].cordoned_by, "user");
  EXPECT_THAT(seen.computes.at("local").nodes, ElementsAre(Pair("cordoned", 1), Pair("idle", 1)));
  EXPECT_EQ(seen.problems, 0) << "a user's own cordon is none";
}

TEST_F(MonitoringTest, WhatIsBeyondTheLimitsIsInTheSumsAlone) {
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kRunning));
  const Monitoring some = Look({.jobs = 0, .nodes = 1});
  EXPECT_THAT(some.placed, IsEmpty());
  EXPECT_EQ(some.jobs_left_out, 1);
  ASSERT_EQ(some.nodes.size(), 1);
  EXPECT_EQ(some.nodes[0].node.name, "n1");
  EXPECT_EQ(some.nodes_left_out, 1);
  const Monitoring::Compute& local = some.computes.at("local");
  EXPECT_EQ(local.nodes_in_use, 2);
  EXPECT_THAT(local.nodes, ElementsAre(Pair("running", 2)));
  EXPECT_EQ(local.used, local.has);
  EXPECT_GT(local.has.cores, 0);
  const Monitoring all = Look();
  EXPECT_EQ(all.jobs_left_out + all.nodes_left_out, 0);
}

TEST_F(MonitoringTest, TheOldestJobsAreTold) {
  // Their ids sort the other way round.
  for (const char* name : {"c", "b", "a"}) {
    ASSERT_TRUE(
        world_
            .Submit(absl::StrReplaceAll(kJobFile, {{"name: j", absl::StrCat("name: ", name)},
                                                   {"instance_count: 2", "instance_count: 1"}}))
            .ok());
  }
  ASSERT_TRUE(world_.StepUntilState("b", JobState::kRunning));
  const Monitoring seen = Look({.jobs = 1});
  ASSERT_EQ(seen.placed.size(), 1);
  EXPECT_EQ(seen.placed[0].id, "c");
  EXPECT_EQ(seen.jobs_left_out, 1);
}

// Its service begins with the test, whose jobs may fail.
class MonitoringOfFailuresTest : public ::testing::Test {
 protected:
  base::TemporaryDirectory folder_;
};

TEST_F(MonitoringOfFailuresTest, AJobThatFailedIsCountedByWhatFailed) {
  World world(folder_.path(), {{1, {{"code", 3}}}});
  ASSERT_TRUE(world.Submit().ok());
  ASSERT_TRUE(world.StepUntilOver("j"));
  EXPECT_EQ(world.State("j"), JobState::kFailed);
  const JobCounters::Counts counts = world.service().Monitor({}).counts;
  EXPECT_THAT(counts.failures, ElementsAre(Pair(FailureKind::kExitCode, 1)));
  EXPECT_THAT(counts.submitted, ElementsAre(Pair(SubmissionKind::kCommand, 1)));
  EXPECT_EQ(counts.restarts, 0);
}

}  // namespace
}  // namespace tutti::service
