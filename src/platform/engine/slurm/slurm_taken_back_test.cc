// These jobs had begun when Slurm took them back to its queue, or ended them of itself.
// Covers: slurm_allocation.cc.
#include <fcntl.h>
#include <gmock/gmock.h>

#include "absl/strings/match.h"
#include "base/file.h"
#include "platform/engine/slurm/slurm_engine.h"
#include "platform/engine/slurm/slurm_engine_test_support.h"

namespace tutti::engine {
namespace {

using ::testing::HasSubstr;

// As when a slurmctld that was killed has not saved that it had started it.
TEST_F(SlurmEngineTest, WhatSlurmQueuedAgainAndCouldNotLaunchThenMayRunWellOnOthers) {
  taking_back_ = absl::Hours(1);
  Open();
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  AwaitRunning("a.1");
  slurm_.End("a.1", "PENDING");
  ASSERT_TRUE(CountReaches("squeue", slurm_.count("squeue") + 3));
  slurm_.FailLaunch("a.1");
  const AllocationState unlaunched = AwaitEnd("a.1");
  EXPECT_EQ(unlaunched.reason, "it was cancelled in Slurm before it had begun on its nodes");
  EXPECT_TRUE(unlaunched.lost);
  ASSERT_TRUE(engine_->Start(Gang("b.1")).ok());
  AwaitRunning("b.1");
  slurm_.End("b.1", "CANCELLED");  // by somebody
  EXPECT_FALSE(AwaitEnd("b.1").lost);
}

// And of which the service that is killed as well has not seen that it waited.
TEST_F(SlurmEngineTest, WhatSlurmStartedAgainUnseenAndCouldNotLaunchMayRunWellOnOthers) {
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  AwaitRunning("a.1");
  engine_.reset();
  slurm_.FailLaunch("a.1", /*later=*/absl::Seconds(3));
  Open();
  const AllocationState end = AwaitEnd("a.1");
  EXPECT_EQ(end.reason, "it was cancelled in Slurm before it had begun on its nodes");
  EXPECT_TRUE(end.lost);
}

TEST_F(SlurmEngineTest, AJobThatWaitsAgainAfterItWasOnItsNodesIsLostAndCancelled) {
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  AwaitRunning("a.1");
  slurm_.Hold(true);
  ASSERT_TRUE(engine_->Start(Gang("b.1")).ok());
  Await("b.1", [](const AllocationState& s) { return absl::StrContains(s.reason, "Resources"); });
  slurm_.End("b.1", "CONFIGURING");
  Await("b.1", [](const AllocationState& s) { return absl::StrContains(s.reason, "made ready"); });
  slurm_.End("b.1", "PENDING");  // since they did not boot
  slurm_.End("a.1", "PENDING");
  const AllocationState end = AwaitEnd("a.1");
  EXPECT_EQ(end.reason, "Slurm took it back to its queue after it had started it");
  EXPECT_TRUE(end.lost);
  EXPECT_TRUE(CountReaches("scancel", 1));
  EXPECT_TRUE(CountReaches("squeue", slurm_.count("squeue") + 2));
  EXPECT_TRUE(State("b.1").waits);
  EXPECT_EQ(slurm_.state(1), "CANCELLED");
  EXPECT_EQ(slurm_.state(2), "PENDING");
}

// It began and was ended between two polls, or while the service was away.
TEST_F(SlurmEngineTest, AJobThatWaitsThoughALauncherOfItHasBegunIsLostAndCancelled) {
  slurm_.Hold(true);
  ASSERT_TRUE(engine_->Start(Gang("a.1", 2)).ok());
  ASSERT_TRUE(engine_->Start(Gang("b.1", 2)).ok());
  Await("b.1", [](const AllocationState& s) { return absl::StrContains(s.reason, "Resources"); });
  ASSERT_TRUE(base::ReplaceFile(root_.path() / "shared/a.1/1/started", "").ok());
  const AllocationState end = AwaitEnd("a.1");
  EXPECT_EQ(end.reason, "Slurm took it back to its queue after it had started it");
  EXPECT_TRUE(end.lost);
  EXPECT_TRUE(CountReaches("scancel", 1));
  EXPECT_TRUE(State("b.1").waits);
}

TEST_F(SlurmEngineTest, AJobThatRanUnseenBeforeAndCouldNotBeLaunchedThenIsLost) {
  taking_back_ = absl::Hours(1);
  Open();
  slurm_.Hold(true);
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  Await("a.1", [](const AllocationState& s) { return absl::StrContains(s.reason, "Resources"); });
  ASSERT_TRUE(base::ReplaceFile(root_.path() / "shared/a.1/0/started", "").ok());
  ASSERT_TRUE(CountReaches("squeue", slurm_.count("squeue") + 3));
  slurm_.FailLaunch("a.1");
  const AllocationState end = AwaitEnd("a.1");
  EXPECT_EQ(end.reason, "it was cancelled in Slurm before it had begun on its nodes");
  EXPECT_TRUE(end.lost);
}

// A slurmd is told to launch the job a second time.
TEST_F(SlurmEngineTest, AJobThatIsCancelledAfterItsLaunchersDiedUntoldIsLost) {
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  ASSERT_TRUE(engine_->Start(Gang("b.1")).ok());
  AwaitRunning("a.1");
  AwaitRunning("b.1");
  slurm_.FailLaunch("a.1");
  EXPECT_THAT(AwaitEnd("a.1").reason, HasSubstr("after its launchers had died"));
  EXPECT_TRUE(AwaitEnd("a.1").lost);
  ASSERT_TRUE(base::Open(root_.path() / "shared/b.1/0/done", O_WRONLY | O_CREAT).ok());
  slurm_.FailLaunch("b.1");
  EXPECT_FALSE(AwaitEnd("b.1").lost);
  ASSERT_TRUE(engine_->Start(Gang("c.1")).ok());
  AwaitRunning("c.1");
  ASSERT_TRUE(base::MakeDirectories(root_.path() / "shared/c.1/0/spool").ok());
  ASSERT_TRUE(base::ReplaceFile(root_.path() / "shared/c.1/0/spool/events.jsonl",
                                R"({"kind":"finalizing","time":1.5})")
                  .ok());
  slurm_.FailLaunch("c.1");
  EXPECT_FALSE(AwaitEnd("c.1").lost);
}

TEST_F(SlurmEngineTest, AJobThatWaitsAgainOnNodesThatShareNothingIsLost) {
  OpenUnshared();
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  AwaitRunning("a.1");
  slurm_.End("a.1", "PENDING");
  const AllocationState end = AwaitEnd("a.1");
  EXPECT_THAT(end.reason, HasSubstr("took it back"));
  EXPECT_TRUE(end.lost);
}

TEST_F(SlurmEngineTest, AJobWhoseNewerStateComesBackRunsOn) {
  taking_back_ = absl::Hours(1);
  Open();
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  AwaitRunning("a.1");
  slurm_.End("a.1", "PENDING");
  Await("a.1", [](const AllocationState& s) { return s.waits; });
  slurm_.End("a.1", "RUNNING");
  AwaitRunning("a.1");
  ASSERT_TRUE(engine_->Stop("a.1", -absl::Hours(1)).ok());  // by force, at once
  const AllocationState end = AwaitEnd("a.1");
  EXPECT_EQ(end.reason, "");
  EXPECT_FALSE(end.lost);
}

// A signal alone leaves no job CANCELLED in Slurm: where it does here somebody else did that.
TEST_F(SlurmEngineTest, WhoCancelsAJobThatTuttiOnlyTellsToEndMeansIt) {
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  AwaitRunning("a.1");
  ASSERT_TRUE(engine_->Stop("a.1", absl::Hours(1)).ok());
  const AllocationState end = AwaitEnd("a.1");
  EXPECT_EQ(end.reason, "it was cancelled in Slurm (Slurm: CANCELLED)");
  EXPECT_FALSE(end.lost);
}

TEST_F(SlurmEngineTest, AJobThatSlurmTookBackIsLostAlsoIfTuttiCancelsItThen) {
  taking_back_ = absl::Hours(1);
  Open();
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  AwaitRunning("a.1");
  slurm_.End("a.1", "PENDING");
  Await("a.1", [](const AllocationState& s) { return s.waits; });
  ASSERT_TRUE(engine_->Stop("a.1", absl::ZeroDuration()).ok());
  const AllocationState end = AwaitEnd("a.1");
  EXPECT_THAT(end.reason, HasSubstr("took it back"));
  EXPECT_TRUE(end.lost);
}

}  // namespace
}  // namespace tutti::engine
