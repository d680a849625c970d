// These tests give the Slurm engine a queue that answers late, not at all or twice.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/test_patience.h"
#include "base/unique_fd.h"
#include "platform/engine/slurm/slurm_engine.h"
#include "platform/engine/slurm/slurm_engine_test_support.h"

namespace tutti::engine {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Fault = SlurmCommandsFake::Fault;

TEST_F(SlurmEngineTest, AccountingIsAskedOfNoMoreJobsThanACommandLineHolds) {
  slurm_.KeepAccounts();
  engine_.reset();
  constexpr int kMany = 5;
  most_numbers_ = 2;
  const auto long_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  for (int i = 0; i < kMany; ++i) {  // as an earlier service left them
    const std::filesystem::path folder = root_.path() / "shared" / absl::StrCat("job.", i);
    ASSERT_TRUE(base::MakeDirectories(folder).ok());
    ASSERT_TRUE(base::ReplaceFile(folder / "batch.sh", "").ok());
    ASSERT_TRUE(WriteSlurmId(folder, 10'000'000 + i, /*durable=*/false).ok());
    std::filesystem::last_write_time(folder / "slurm-id", long_ago);
  }
  Open();
  for (int i = 0; i < kMany; i += kMany - 1) {
    Await(absl::StrCat("job.", i), [](const AllocationState& s) { return !s.waits; });
  }
  EXPECT_EQ(slurm_.count("sacct"), 3);
}

TEST_F(SlurmEngineTest, OfTwoJobsOfOneAllocationOneIsCancelled) {
  slurm_.Hold(true);
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  Await("a.1", [&](const AllocationState&) { return slurm_.count("sbatch") == 1; });
  slurm_.Double("a.1");
  Await("a.1", [&](const AllocationState&) { return slurm_.count("scancel") == 1; });
  slurm_.Hold(false);
  AwaitRunning("a.1");
}

TEST_F(SlurmEngineTest, AJobOfAnAllocationThatIsOverIsCancelled) {
  for (const char* id : {"a.1", "b.1", "c.1"}) {
    ASSERT_TRUE(engine_->Start(Gang(id)).ok());
    AwaitRunning(id);
  }
  slurm_.End("a.1", "FAILED");
  slurm_.End("b.1", "FAILED");
  AwaitEnd("a.1");
  AwaitEnd("b.1");
  ASSERT_TRUE(engine_->Release("b.1").ok());
  slurm_.End("a.1", "RUNNING");
  slurm_.End("b.1", "RUNNING");
  Await("c.1", [&](const AllocationState&) { return slurm_.count("scancel") >= 2; });
  EXPECT_EQ(State("c.1").launcher_alive, std::vector<bool>{true});
}

TEST_F(SlurmEngineTest, AJobOfNoAllocationIsCancelledAlsoWhereThereIsNoOther) {
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  AwaitRunning("a.1");
  engine_.reset();
  std::filesystem::remove_all(root_.path() / "shared/a.1");
  Open();
  listening_.AwaitCallsInAll("scancel", 1);
  EXPECT_EQ(slurm_.state(1), "CANCELLED");
}

TEST_F(SlurmEngineTest, AControllerThatIsDownIsWaitedForWithItsWords) {
  slurm_.SetFault("sbatch", Fault::kDown);
  slurm_.SetFault("squeue", Fault::kDown);
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  ASSERT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] {
    return State("a.1").reason ==
           "waits for Slurm, which does not answer: Failed while looking for jobs "
           "(slurm_load_jobs)";
  }));
  slurm_.SetFault("sbatch", Fault::kNone);
  slurm_.SetFault("squeue", Fault::kNone);
  AwaitRunning("a.1");
}

TEST_F(SlurmEngineTest, NoJobIsOverOrSubmittedAgainSinceTheControllerIsDown) {
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  AwaitRunning("a.1");
  slurm_.SetFault("sbatch", Fault::kLate);
  slurm_.SetFault("squeue", Fault::kDown);
  ASSERT_TRUE(engine_->Start(Gang("b.1")).ok());
  const base::Deadline settled = base::Deadline::After(absl::Milliseconds(300));
  while (slurm_.count("sbatch") < 2 || !settled.Expired()) {
    ASSERT_TRUE(State("a.1").launcher_alive == std::vector<bool>{true}) << State("a.1").reason;
    ::usleep(2000);
  }
  slurm_.SetFault("squeue", Fault::kNone);
  AwaitRunning("b.1");
  EXPECT_EQ(slurm_.count("sbatch"), 2);
  slurm_.End("a.1", "COMPLETED");
  EXPECT_EQ(AwaitEnd("a.1").reason, "");
}

TEST_F(SlurmEngineTest, AsksForEndedJobsTooWhichLaterVersionsLeaveOutUnlessTold) {
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  AwaitRunning("a.1");
  EXPECT_THAT(listening_.last("squeue"),
              ElementsAre("squeue", "--all", "--me", "--states=all", "--noheader", "--json"));
}

TEST_F(SlurmEngineTest, ALostNodeIsKnownAsSuchAlsoAfterSlurmHasForgottenTheJob) {
  ASSERT_TRUE(engine_->Start(Gang("a.1", 2)).ok());
  ASSERT_TRUE(engine_->Start(Gang("b.1")).ok());
  AwaitRunning("a.1");
  AwaitRunning("b.1");
  slurm_.End("a.1", "NODE_FAIL");
  slurm_.End("b.1", "TIMEOUT");
  EXPECT_TRUE(AwaitEnd("a.1").lost);
  EXPECT_FALSE(AwaitEnd("b.1").lost);
  slurm_.Forget();
  Open();
  const AllocationState end = AwaitEnd("a.1");
  EXPECT_TRUE(end.lost);
  EXPECT_THAT(end.reason, HasSubstr("NODE_FAIL"));
}

TEST_F(SlurmEngineTest, HowAJobEndedThatSlurmHasForgottenItsAccountingTells) {
  slurm_.KeepAccounts();
  const auto start = [&](const std::string& id, const std::string& job) {
    Allocation gang = Gang(id, 2);
    gang.plan.job_id = job;
    ASSERT_TRUE(engine_->Start(gang).ok());
    AwaitRunning(id);
  };
  start("a.1", "a");
  start("b.1", "b");
  start("c.1", "somebody's");  // whose number was given again
  engine_.reset();             // the service is away
  slurm_.End("a.1", "NODE_FAIL");
  slurm_.End("b.1", "CANCELLED by 1000");
  slurm_.End("c.1", "NODE_FAIL");
  slurm_.Forget();
  Open();
  const AllocationState lost = AwaitEnd("a.1");
  EXPECT_TRUE(lost.lost);
  EXPECT_EQ(lost.reason, "a node of it failed (Slurm: NODE_FAIL)");
  EXPECT_EQ(AwaitEnd("b.1").reason, "it was cancelled in Slurm (Slurm: CANCELLED)");
  EXPECT_EQ(AwaitEnd("c.1").reason, "Slurm no longer knows its job 3");
  EXPECT_EQ(slurm_.count("sacct"), 1);
  EXPECT_THAT(listening_.last("sacct"), Contains("--jobs=1,2,3"));
}

TEST_F(SlurmEngineTest, WhatItsNodesCouldNotLaunchMayRunWellOnOthers) {
  slurm_.Hold(true);
  for (const char* id : {"a.1", "b.1"}) {
    ASSERT_TRUE(engine_->Start(Gang(id)).ok());
    Await(id, [](const AllocationState& s) { return absl::StrContains(s.reason, "Resources"); });
  }
  slurm_.FailLaunch("a.1");
  slurm_.End("b.1", "CANCELLED");  // by somebody, while it waited
  const AllocationState unlaunched = AwaitEnd("a.1");
  EXPECT_EQ(unlaunched.reason, "it was cancelled in Slurm before it had begun on its nodes");
  EXPECT_TRUE(unlaunched.lost);
  EXPECT_FALSE(AwaitEnd("b.1").lost);
}

TEST_F(SlurmEngineTest, WhoCancelsAJobWhoseNodesBootMeansIt) {
  slurm_.Hold(true);
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  Await("a.1", [](const AllocationState& s) { return absl::StrContains(s.reason, "Resources"); });
  slurm_.End("a.1", "CONFIGURING");
  Await("a.1", [](const AllocationState& s) { return absl::StrContains(s.reason, "made ready"); });
  slurm_.FailLaunch("a.1");
  const AllocationState cancelled = AwaitEnd("a.1");
  EXPECT_EQ(cancelled.reason, "it was cancelled in Slurm (Slurm: CANCELLED)");
  EXPECT_FALSE(cancelled.lost);
}

TEST_F(SlurmEngineTest, WhyItsLauncherCouldNotBeginIsSaid) {
  slurm_.Hold(true);
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  Await("a.1", [](const AllocationState& s) { return absl::StrContains(s.reason, "Resources"); });
  ASSERT_TRUE(base::ReplaceFile(root_.path() / "shared/a.1/slurm.log",
                                "slurm_script: line 9: /opt/tutti: No such file or directory\n")
                  .ok());
  slurm_.End("a.1", "FAILED");
  const AllocationState failed = AwaitEnd("a.1");
  EXPECT_EQ(failed.reason,
            "its launcher could not begin: slurm_script: line 9: /opt/tutti: No such file or "
            "directory; its nodes have to see /bin/sh and the libraries that it is linked to");
  EXPECT_FALSE(failed.lost);
}

TEST_F(SlurmEngineTest, WhatALauncherNotedThatCouldNotTakeItsPlanIsSaid) {
  slurm_.Hold(true);
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  Await("a.1", [](const AllocationState& s) { return absl::StrContains(s.reason, "Resources"); });
  const std::filesystem::path node = root_.path() / "shared/a.1/0";
  ASSERT_TRUE(base::MakeDirectories(node).ok());
  ASSERT_TRUE(base::ReplaceFile(node / "died",
                                R"({"pid": 1, "reason": "truncate lock: No space left on device"})")
                  .ok());
  slurm_.End("a.1", "FAILED");
  const AllocationState ended = AwaitEnd("a.1");
  EXPECT_EQ(ended.reason, "its launcher could not begin: truncate lock: No space left on device");
  EXPECT_TRUE(ended.lost);
  EXPECT_TRUE(ended.disk_full) << "of all nodes";
}

// A note does not fit on the disk either.
TEST_F(SlurmEngineTest, ALauncherThatFoundTheSharedDiskFullSaysSoByItsExitCode) {
  slurm_.Hold(true);
  ASSERT_TRUE(engine_->Start(Gang("a.1", 2)).ok());
  ASSERT_TRUE(engine_->Start(Gang("b.1")).ok());
  Await("b.1", [](const AllocationState& s) { return absl::StrContains(s.reason, "Resources"); });
  ASSERT_TRUE(base::ReplaceFile(root_.path() / "shared/a.1/0/started", "").ok());
  slurm_.End("a.1", "FAILED", 74);
  slurm_.End("b.1", "FAILED", 9);
  const std::string why =
      absl::StrCat("its launcher could not begin: the disk of ", (root_.path() / "shared").native(),
                   ", which all nodes share, was full");
  EXPECT_EQ(AwaitEnd("a.1").reason, why);
  EXPECT_TRUE(State("a.1").lost);
  EXPECT_TRUE(State("a.1").disk_full);
  EXPECT_FALSE(AwaitEnd("b.1").disk_full);
  EXPECT_EQ(State("b.1").reason, "");
  Open();  // by the next service too
  EXPECT_EQ(State("a.1").reason, why);
  EXPECT_TRUE(State("a.1").disk_full);
}

TEST_F(SlurmEngineTest, WhereAnotherNodesLauncherHasBegunTheNodeIsAtFault) {
  taking_back_ = absl::Hours(1);
  Open();
  slurm_.Hold(true);
  ASSERT_TRUE(engine_->Start(Gang("a.1", 2)).ok());
  Await("a.1", [](const AllocationState& s) { return absl::StrContains(s.reason, "Resources"); });
  ASSERT_TRUE(base::ReplaceFile(root_.path() / "shared/a.1/0/started", "").ok());
  ASSERT_TRUE(base::ReplaceFile(root_.path() / "shared/a.1/slurm.log",
                                "slurmstepd: error: execve(): /opt/tutti: Permission denied\n")
                  .ok());
  slurm_.End("a.1", "FAILED");
  const AllocationState failed = AwaitEnd("a.1");
  EXPECT_THAT(failed.reason, HasSubstr("execve(): /opt/tutti: Permission denied"));
  EXPECT_TRUE(failed.lost);
}

TEST_F(SlurmEngineTest, AJobThatIsFirstSeenCompletingIsNotOverUntilAllItsNodesAreTold) {
  slurm_.Hold(true);
  ASSERT_TRUE(engine_->Start(Gang("a.1", 2)).ok());
  ASSERT_TRUE(engine_->Start(Gang("b.1", 2)).ok());
  for (const char* id : {"a.1", "b.1"}) {
    Await(id, [](const AllocationState& s) { return absl::StrContains(s.reason, "Resources"); });
  }
  slurm_.Complete("a.1", "n2");
  slurm_.Complete("b.1", "");
  for (const char* id : {"a.1", "b.1"}) {
    const AllocationState state = Await(
        id, [](const AllocationState& s) { return !absl::StrContains(s.reason, "Resources"); });
    EXPECT_TRUE(state.waits) << state.reason;
    slurm_.End(id, "COMPLETED");
    EXPECT_THAT(AwaitEnd(id).nodes, SizeIs(2));
  }
}

TEST_F(SlurmEngineTest, ACompletingJobStaysOnAllItsNodes) {
  ASSERT_TRUE(engine_->Start(Gang("a.1", 2)).ok());
  AwaitRunning("a.1");
  slurm_.Complete("a.1", "n2");
  const int looks = slurm_.count("squeue");
  const AllocationState state =
      Await("a.1", [&](const AllocationState&) { return slurm_.count("squeue") > looks + 2; });
  EXPECT_FALSE(state.waits);
  EXPECT_THAT(state.nodes, SizeIs(2));
}

TEST_F(SlurmEngineTest, WhatBeganOnNodesThatWereNeverToldIsStillDelivered) {
  slurm_.Hold(true);
  ASSERT_TRUE(engine_->Start(Gang("a.1", 2)).ok());
  Await("a.1", [](const AllocationState& s) { return absl::StrContains(s.reason, "Resources"); });
  slurm_.Complete("a.1", "n2");
  Await("a.1", [](const AllocationState& s) { return !absl::StrContains(s.reason, "Resources"); });
  slurm_.Forget();
  const AllocationState end = AwaitEnd("a.1");
  EXPECT_THAT(end.reason, HasSubstr("Slurm no longer knows its job"));
  EXPECT_THAT(end.nodes, SizeIs(2));
}

TEST_F(SlurmEngineTest, WhatAKilledControllerHadJustAcceptedIsSubmittedAgainIfItHasNotBegun) {
  slurm_.Hold(true);
  const auto waits = [](const AllocationState& s) {
    return absl::StrContains(s.reason, "Resources");
  };
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  Await("a.1", waits);
  slurm_.Lose("a.1");
  Await("a.1", [&](const AllocationState& s) { return slurm_.count("sbatch") == 2 && waits(s); });
  slurm_.Lose("a.1");
  Open();  // the service died with it
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  Await("a.1", [&](const AllocationState& s) { return slurm_.count("sbatch") == 3 && waits(s); });
  slurm_.Hold(false);
  AwaitRunning("a.1");
  EXPECT_EQ(slurm_.count("sbatch"), 3);
}

TEST_F(SlurmEngineTest, AJobThatHadBegunWhenItsControllerLostItMayRunWellElsewhere) {
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  AwaitRunning("a.1");
  slurm_.Lose("a.1");
  const AllocationState end = AwaitEnd("a.1");
  EXPECT_EQ(end.reason, "Slurm no longer knows its job 1");
  EXPECT_TRUE(end.lost);
  EXPECT_EQ(slurm_.count("sbatch"), 1);
}

TEST_F(SlurmEngineTest, ALauncherOfAForgottenJobIsAliveAsLongAsItHoldsItsLock) {
  ASSERT_TRUE(engine_->Start(Gang("a.1", 2)).ok());
  AwaitRunning("a.1");
  std::vector<base::UniqueFd> locks;
  for (const char* node : {"0", "1"}) {
    const auto folder = root_.path() / "shared" / "a.1" / node;
    auto lock = base::Open(folder / "lock", O_RDWR | O_CREAT);
    ASSERT_TRUE(lock.ok() && ::flock(lock->get(), LOCK_EX | LOCK_NB) == 0);
    locks.push_back(*std::move(lock));
    ASSERT_TRUE(base::ReplaceFile(folder / "started", "").ok());
  }
  slurm_.Lose("a.1");
  const auto forgotten = [](const AllocationState& s) {
    return s.reason == "Slurm no longer knows its job 1";
  };
  EXPECT_THAT(Await("a.1", forgotten).launcher_alive, ElementsAre(true, true));
  locks.pop_back();
  const auto one_is_left = [](const AllocationState& s) { return !s.launcher_alive[1]; };
  EXPECT_THAT(Await("a.1", one_is_left).launcher_alive, ElementsAre(true, false));
  locks.clear();
  EXPECT_THAT(AwaitEnd("a.1").launcher_alive, ElementsAre(false, false));
}

// The folder of a job that is over hangs, as one on a network disk may. Jobs that ended normally
// are asked for no lock.
TEST_F(SlurmEngineTest, NobodyWaitsForTheLocksOfWhatIsOver) {
  const auto folder = root_.path() / "shared/a.1";
  for (const char* id : {"a.1", "b.1"}) {
    ASSERT_TRUE(engine_->Start(Gang(id, 2)).ok());
    AwaitRunning(id);
  }
  for (const char* node : {"0", "1"}) {
    ASSERT_EQ(::mkfifo((folder / node / "lock").c_str(), 0600), 0);  // who opens it hangs
    ASSERT_TRUE(base::ReplaceFile(folder / node / "started", "").ok());
  }
  ASSERT_TRUE(base::ReplaceFile(folder / "0/done", "").ok());
  slurm_.End("a.1", "NODE_FAIL");
  std::future<void> calls = std::async(std::launch::async, [&] {
    const auto is_over = [](const AllocationState& s) { return s.lost; };
    EXPECT_THAT(Await("a.1", is_over).launcher_alive, ElementsAre(true, true));
    EXPECT_TRUE(engine_->Stop("b.1", absl::Seconds(1)).ok());
    EXPECT_TRUE(CountReaches("scancel", 1));
  });
  EXPECT_EQ(calls.wait_for(absl::ToChronoSeconds(base::Patient(absl::Seconds(30)))),
            std::future_status::ready);
  const auto answers = base::Open(folder / "1/lock", O_RDWR);  // from here on
  EXPECT_THAT(AwaitEnd("a.1").launcher_alive, ElementsAre(false, false));
  AwaitEnd("b.1");
}

TEST_F(SlurmEngineTest, WhatAKilledControllerTakesForRunningAgainIsCancelled) {
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  AwaitRunning("a.1");
  slurm_.End("a.1", "COMPLETED");
  AwaitEnd("a.1");
  ASSERT_TRUE(CountReaches("squeue", slurm_.count("squeue") + 1));  // it looks after each end
  ASSERT_EQ(slurm_.count("scancel"), 0);
  slurm_.End("a.1", "RUNNING");
  EXPECT_TRUE(CountReaches("scancel", 1));
}

// Somebody may have cancelled it, and Slurm forgot.
TEST_F(SlurmEngineTest, AJobThatWasAcceptedLongBeforeSlurmLostItIsNotSubmittedAgain) {
  saving_ = absl::ZeroDuration();
  Open();
  slurm_.Hold(true);
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  Await("a.1", [](const AllocationState& s) { return absl::StrContains(s.reason, "Resources"); });
  slurm_.Lose("a.1");
  EXPECT_TRUE(AwaitEnd("a.1").lost);
  saving_ = absl::Minutes(1);
  ASSERT_TRUE(engine_->Start(Gang("b.1")).ok());
  Await("b.1", [](const AllocationState& s) { return absl::StrContains(s.reason, "Resources"); });
  engine_.reset();
  slurm_.Lose("b.1");
  const std::filesystem::path number = root_.path() / "shared/b.1/slurm-id";
  std::filesystem::last_write_time(
      number, std::filesystem::last_write_time(number) - std::chrono::hours(1));
  Open();
  EXPECT_TRUE(AwaitEnd("b.1").lost);
  EXPECT_EQ(slurm_.count("sbatch"), 2);
}

// So many are cancelled by their numbers alone.
TEST_F(SlurmEngineTest, AJobThatWasCancelledForAnotherOfItsNumberIsSubmittedAgain) {
  slurm_.Hold(true);
  const std::vector<std::string> ids = {"a.1", "b.1", "c.1", "d.1", "e.1", "victim.1"};
  for (const std::string& id : ids) ASSERT_TRUE(engine_->Start(Gang(id)).ok());
  ASSERT_TRUE(CountReaches("sbatch", 6));
  for (const std::string& id : ids) {
    Await(id, [](const AllocationState& s) { return absl::StrContains(s.reason, "Resources"); });
  }
  slurm_.SetFault("squeue", Fault::kDown);  // until all are to be stopped
  listening_.AwaitCalls("squeue", 2);
  for (const std::string& id : ids) {
    if (id == "victim.1") continue;
    ASSERT_TRUE(engine_->Stop(id, absl::Seconds(1)).ok());
  }
  slurm_.GiveNumberAnewTo("victim.1");
  slurm_.SetFault("squeue", Fault::kNone);
  ASSERT_TRUE(CountReaches("scancel", 5));
  EXPECT_TRUE(CountReaches("sbatch", 7));
  slurm_.Hold(false);
  EXPECT_TRUE(AwaitRunning("victim.1").launcher_alive[0]);
}

TEST_F(SlurmEngineTest, ANumberThatSlurmMayHaveGivenAgainIsNotCancelled) {
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  AwaitRunning("a.1");
  slurm_.SetFault("squeue", Fault::kDown);
  listening_.AwaitCalls("squeue", 2);
  const int number = slurm_.Lose("a.1");
  ASSERT_TRUE(engine_->Stop("a.1", -absl::InfiniteDuration()).ok());
  listening_.AwaitCalls("squeue", 2);
  slurm_.SetFault("squeue", Fault::kNone);
  AwaitEnd("a.1");
  EXPECT_EQ(slurm_.state(number), "RUNNING");
  EXPECT_EQ(slurm_.count("scancel"), 0);
}

}  // namespace
}  // namespace tutti::engine
