// These tests give the Slurm engine an sbatch or scancel that answers late or not at all.
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/process/command.h"
#include "base/test_patience.h"
#include "platform/engine/slurm/slurm_engine.h"
#include "platform/engine/slurm/slurm_engine_test_support.h"

namespace tutti::engine {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Le;
using Fault = SlurmCommandsFake::Fault;

TEST_F(SlurmEngineTest, AnSbatchThatTookEffectWithoutAnAnswerIsNotRepeated) {
  slurm_.SetFault("sbatch", Fault::kLate);
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  AwaitRunning("a.1");
  EXPECT_EQ(slurm_.count("sbatch"), 1);
}

TEST_F(SlurmEngineTest, AnSbatchThatTookNoEffectIsRepeatedOnceThatIsKnown) {
  slurm_.SetFault("sbatch", Fault::kNothing);
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  Await("a.1", [](const AllocationState& s) { return s.waits && !s.reason.empty(); });
  slurm_.SetFault("sbatch", Fault::kNone);
  AwaitRunning("a.1");
  EXPECT_EQ(slurm_.count("sbatch"), 1);
}

TEST_F(SlurmEngineTest, WhatSlurmRefusesEndsWithItsWords) {
  slurm_.SetFault("sbatch", Fault::kRefuse);
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  const AllocationState end = AwaitEnd("a.1");
  EXPECT_THAT(end.reason, HasSubstr("Slurm refused it: Invalid partition name"));
  EXPECT_FALSE(end.lost);
}

TEST_F(SlurmEngineTest, ASignalThatSlurmDidNotPassOnIsSentAgain) {
  ASSERT_TRUE(engine_->Start(Gang("a.1", 2)).ok());
  AwaitRunning("a.1");
  slurm_.SetFault("scancel", Fault::kDown);
  ASSERT_TRUE(engine_->Stop("a.1", absl::Minutes(10)).ok());
  Await("a.1", [&](const AllocationState&) { return !listening_.last("scancel").empty(); });
  slurm_.SetFault("scancel", Fault::kNone);
  AwaitEnd("a.1");
  EXPECT_THAT(listening_.last("scancel"), ElementsAre("scancel", "--signal=TERM", "--name=j", "1"));
  EXPECT_EQ(slurm_.count("scancel"), 1);
}

TEST_F(SlurmEngineTest, AJobThatIsLeftTimeIsEndedByForceOnlyOnceItIsStopped) {
  slurm_.IgnoreSignals();
  ASSERT_TRUE(engine_->Start(Gang("a.1", 2)).ok());
  AwaitRunning("a.1");
  ASSERT_TRUE(engine_->StopPatiently("a.1", -absl::Hours(1)).ok());
  ASSERT_TRUE(CountReaches("scancel", 1));
  listening_.AwaitCalls("squeue", 5);
  EXPECT_THAT(listening_.last("scancel"), ElementsAre("scancel", "--signal=TERM", "--name=j", "1"));
  EXPECT_EQ(slurm_.count("scancel"), 1);
  ASSERT_TRUE(engine_->StopPatiently("a.1", -absl::Hours(1)).ok());
  ASSERT_TRUE(engine_->Stop("a.1", absl::Minutes(10)).ok());
  ASSERT_TRUE(CountReaches("scancel", 2)) << "they are told that there is no more time";
  EXPECT_THAT(listening_.last("scancel"), ElementsAre("scancel", "--signal=TERM", "--name=j", "1"));
  EXPECT_EQ(slurm_.state(1), "RUNNING");
  ASSERT_TRUE(engine_->Kill("a.1", 0).ok());
  AwaitEnd("a.1");
  EXPECT_EQ(slurm_.state(1), "CANCELLED");
}

TEST_F(SlurmEngineTest, AJobThatIsLeftTimeAndThenNoneIsEndedByForce) {
  slurm_.IgnoreSignals();
  ASSERT_TRUE(engine_->Start(Gang("a.1", 2)).ok());
  AwaitRunning("a.1");
  ASSERT_TRUE(engine_->StopPatiently("a.1", absl::ZeroDuration()).ok());
  ASSERT_TRUE(engine_->Stop("a.1", -absl::Hours(1)).ok());
  AwaitEnd("a.1");
  EXPECT_THAT(listening_.last("scancel"), ElementsAre("scancel", "--name=j", "1"));
}

TEST_F(SlurmEngineTest, AJobWhoseFolderTakesNoFileIsStoppedTooAndMarkedOnceItDoes) {
  ASSERT_TRUE(engine_->Start(Gang("a.1", 2)).ok());
  AwaitRunning("a.1");
  const std::filesystem::path mark = root_.path() / "shared/a.1/1/stop";
  std::filesystem::create_directory(mark);  // where a file cannot be
  slurm_.SetFault("scancel", Fault::kDown);
  EXPECT_EQ(engine_->Stop("a.1", absl::Minutes(10)), absl::OkStatus());
  listening_.AwaitCalls("scancel", 1);
  std::filesystem::remove(mark);
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(20),
                                   [&] { return std::filesystem::is_regular_file(mark); }));
  slurm_.SetFault("scancel", Fault::kNone);
  AwaitEnd("a.1");
}

TEST_F(SlurmEngineTest, AJobThatHasGotTheNumberMeanwhileIsNotStopped) {
  ASSERT_TRUE(engine_->Start(Gang("a.1", 2)).ok());
  AwaitRunning("a.1");
  slurm_.GiveNumbersAnew();
  ASSERT_TRUE(engine_->Stop("a.1", absl::Minutes(10)).ok());
  listening_.AwaitCallsInAll("scancel", 1);
  EXPECT_EQ(slurm_.state(1), "RUNNING");
}

TEST_F(SlurmEngineTest, ThatAServiceCancelledItBeforeThisOneSaysNothingOfWhy) {
  ASSERT_TRUE(engine_->Start(Gang("a.1", 2)).ok());
  AwaitRunning("a.1");
  slurm_.SetFault("scancel", Fault::kDown);
  ASSERT_TRUE(engine_->Stop("a.1", absl::Minutes(10)).ok());
  engine_.reset();  // killed, scancel lives on
  slurm_.End("a.1", "CANCELLED");
  Open();
  EXPECT_EQ(AwaitEnd("a.1").reason, "");
}

TEST_F(SlurmEngineTest, ThatItWasCancelledIsSaidOfAJobThatOthersCancelledAlone) {
  for (const char* id : {"a.1", "b.1"}) {
    ASSERT_TRUE(engine_->Start(Gang(id, 2)).ok());
    AwaitRunning(id);
  }
  ASSERT_TRUE(engine_->Stop("a.1", -absl::InfiniteDuration()).ok());  // its time to end is over
  slurm_.End("b.1", "CANCELLED");
  EXPECT_EQ(AwaitEnd("a.1").reason, "");
  EXPECT_THAT(AwaitEnd("b.1").reason, HasSubstr("it was cancelled in Slurm"));
}

// Whose first sbatch ends when it is told to, and each later one when two have been there at once;
// notes who came when.
class CrowdedSlurm final : public SlurmCommands {
 public:
  absl::StatusOr<CommandResult> Run(const std::vector<std::string>& arguments,
                                    base::Deadline deadline,
                                    const std::atomic<bool>& cancelled) override {
    if (arguments.front() != "sbatch") return fake_.Run(arguments, deadline, cancelled);
    {
      absl::MutexLock lock(&mutex_);
      order_.push_back(arguments.back());
      most_ = std::max(most_, ++inside_);
      const bool first = order_.size() == 1;
      const auto may_end = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
        return first ? all_are_there_ : most_ > 1;
      };
      mutex_.AwaitWithTimeout(absl::Condition(&may_end), base::Patient(absl::Seconds(20)));
    }
    auto result = fake_.Run(arguments, deadline, cancelled);
    absl::MutexLock lock(&mutex_);
    --inside_;
    return result;
  }

  void AllAreThere() {
    absl::MutexLock lock(&mutex_);
    all_are_there_ = true;
  }
  int most() const {
    absl::MutexLock lock(&mutex_);
    return most_;
  }
  std::vector<std::string> order() const {
    absl::MutexLock lock(&mutex_);
    return order_;
  }
  SlurmCommandsFake fake_;

 private:
  mutable absl::Mutex mutex_;
  bool all_are_there_ ABSL_GUARDED_BY(mutex_) = false;
  int inside_ ABSL_GUARDED_BY(mutex_) = 0;
  int most_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> order_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(SlurmEngineTest, SubmitsSeveralAtATimeAndThoseThatCameFirstAtFirst) {
  engine_.reset();
  CrowdedSlurm slurm;
  slurm.fake_.SetFault("squeue", Fault::kDown);
  {
    SlurmEngineOptions options;
    options.compute.folder = root_.path() / "crowd";
    options.launcher = {"/bin/true"};
    options.poll_interval = absl::Milliseconds(10);
    engine_ = *SlurmEngine::Open(options, &slurm);
  }
  constexpr int kMany = 40;
  for (int i = 0; i < kMany; ++i) {
    ASSERT_TRUE(engine_->Start(Gang(absl::StrCat("job.", kMany - i))).ok());
  }
  slurm.AllAreThere();
  base::AwaitPatiently(absl::Seconds(30), [&] { return slurm.fake_.count("sbatch") >= kMany; });
  EXPECT_EQ(slurm.fake_.count("sbatch"), kMany);
  EXPECT_THAT(slurm.most(), AllOf(Gt(1), Le(4)));
  const std::vector<std::string> order = slurm.order();
  // Calls that are under way at the same time may overtake each other, and one whose sync of the
  // disk takes long is overtaken by more.
  int in_turn = 0;
  for (int i = 0; i < kMany; ++i) {
    const auto at = std::find_if(order.begin(), order.end(), [&](const std::string& script) {
      return absl::StrContains(script, absl::StrCat("/job.", kMany - i, "/"));
    });
    if (std::abs(at - order.begin() - i) <= 4) ++in_turn;
  }
  EXPECT_GE(in_turn, kMany * 3 / 4);
  engine_.reset();  // before the commands that it uses
}

TEST_F(SlurmEngineTest, AJobBeyondTheLimitOfSubmittedJobsWaits) {
  slurm_.SetFault("sbatch", Fault::kFull);
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  Await("a.1", [](const AllocationState& s) {
    return s.reason == "waits: as many jobs as may be are in Slurm (QOSMaxSubmitJobPerUserLimit)";
  });
  slurm_.SetFault("sbatch", Fault::kNone);
  AwaitRunning("a.1");
}

// Whose sbatch answers when it is told to, or is cancelled.
class StuckSlurm final : public SlurmCommands {
 public:
  absl::StatusOr<CommandResult> Run(const std::vector<std::string>& arguments,
                                    base::Deadline deadline,
                                    const std::atomic<bool>& cancelled) override {
    if (arguments.front() == "sbatch") {
      ++inside_;
      while (!goes_on_ && !cancelled && !deadline.Expired()) ::usleep(1000);
      if (cancelled) return absl::CancelledError("sbatch");
    }
    return fake_.Run(arguments, deadline, cancelled);
  }
  void AwaitInside(int count) const {
    base::AwaitPatiently(absl::Seconds(20), [&] { return inside_ >= count; });
  }
  SlurmCommandsFake fake_;
  std::atomic<bool> goes_on_ = false;
  std::atomic<int> inside_ = 0;
};

class StuckSlurmTest : public SlurmEngineTest {
 protected:
  StuckSlurmTest() {
    engine_.reset();
    SlurmEngineOptions options;
    options.compute.folder = root_.path() / "stuck";
    options.launcher = {"/bin/true"};
    options.poll_interval = absl::Milliseconds(10);
    engine_ = *SlurmEngine::Open(options, &stuck_);
    for (int i = 10; i < 30; ++i) {
      EXPECT_TRUE(engine_->Start(Gang(absl::StrCat("job.", i))).ok());
    }
    stuck_.AwaitInside(1);
  }
  ~StuckSlurmTest() override { engine_.reset(); }  // before the commands that it uses
  StuckSlurm stuck_;
};

TEST_F(StuckSlurmTest, AnEngineThatGoesWaitsForNoCommand) {
  const absl::Duration began = base::SteadyNow();
  engine_.reset();
  EXPECT_LT(base::SteadyNow() - began, base::Patient(absl::Seconds(5)));
  EXPECT_LE(stuck_.inside_, 4);
}

TEST_F(StuckSlurmTest, WhatIsStoppedBeforeItsTurnIsNotSubmitted) {
  ASSERT_TRUE(engine_->Stop("job.29", absl::ZeroDuration()).ok());
  stuck_.goes_on_ = true;
  EXPECT_EQ(AwaitEnd("job.29").reason, "");
  for (int i = 10; i < 29; ++i) AwaitRunning(absl::StrCat("job.", i));
  EXPECT_EQ(stuck_.fake_.count("sbatch"), 19);
}

TEST_F(SlurmEngineTest, WhileSlurmTakesNoJobsFewAreTriedBetweenPolls) {
  slurm_.SetFault("sbatch", Fault::kDown);
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(engine_->Start(Gang(absl::StrCat("job.", i))).ok());
  listening_.AwaitCalls("squeue", 1);
  auto before = listening_.calls();
  listening_.AwaitCalls("squeue", 10);
  auto after = listening_.calls();
  const int polls = after["squeue"] - before["squeue"];
  EXPECT_LE(after["sbatch"] - before["sbatch"], (polls + 1) * 4);
  slurm_.SetFault("sbatch", Fault::kNone);
  for (int i = 0; i < 40; ++i) AwaitRunning(absl::StrCat("job.", i));
}

TEST_F(SlurmEngineTest, SeveralJobsAreStoppedByOneCommand) {
  const std::vector<std::string> ids = {"a.1", "b.1", "c.1", "d.1", "e.1"};
  for (const std::string& id : ids) {
    ASSERT_TRUE(engine_->Start(Gang(id, 2)).ok());
    AwaitRunning(id);
  }
  slurm_.SetFault("squeue", Fault::kDown);
  listening_.AwaitCalls("squeue", 2);
  for (const std::string& id : ids) ASSERT_TRUE(engine_->Stop(id, absl::Minutes(10)).ok());
  slurm_.SetFault("squeue", Fault::kNone);
  for (const std::string& id : ids) AwaitEnd(id);
  EXPECT_THAT(listening_.last("scancel"),
              ElementsAre("scancel", "--signal=TERM", "1", "2", "3", "4", "5"));
}

}  // namespace
}  // namespace tutti::engine
