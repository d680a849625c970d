// What the Slurm engine makes of a Slurm that answers late, not at all or twice. What every engine
// promises is in engine_contract_test.cc.
#include "platform/engine/slurm/slurm_engine.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "platform/engine/slurm/slurm_commands_fake.h"

namespace tutti::engine {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::Not;
using Fault = SlurmCommandsFake::Fault;

class SlurmEngineTest : public ::testing::Test {
 protected:
  SlurmEngineTest() { Open(); }

  void Open() {
    engine_.reset();
    SlurmEngineOptions options;
    options.compute.folder = root_.path() / "shared";
    options.compute.partition = "main";
    options.compute.memory = "1G";
    options.launcher = {"/bin/sh", "-c", "exec true"};
    options.look_interval = absl::Milliseconds(10);
    options.settling = absl::Milliseconds(50);
    options.slow_settling = absl::Milliseconds(100);
    options.pause = absl::Milliseconds(20);
    engine_ = *SlurmEngine::Open(options, &slurm_);
  }

  static Allocation Gang(const std::string& id, int size = 1) {
    Allocation allocation{.id = id};
    spec::LaunchPlan plan;
    plan.allocation_id = id;
    plan.job_id = "j";
    for (int i = 0; i < size; ++i) plan.nodes.push_back({"node", "0.0.0.0", i, 1});
    for (int i = 0; i < size; ++i) {
      plan.node_index = i;
      allocation.plans.push_back(plan);
    }
    return allocation;
  }

  AllocationState State(const std::string& id) {
    const auto states = engine_->Observe();
    if (!states.ok()) return {.id = "?", .reason = std::string(states.status().message())};
    for (const AllocationState& state : *states) {
      if (state.id == id) return state;
    }
    return {.id = "?"};
  }
  template <typename Condition>
  AllocationState Await(const std::string& id, const Condition& holds) {
    const base::Deadline deadline = base::Deadline::After(absl::Seconds(20));
    while (!deadline.Expired()) {
      AllocationState state = State(id);
      if (state.id == id && holds(state)) return state;
      ::usleep(2000);
    }
    ADD_FAILURE() << "the state did not come about";
    return State(id);
  }
  AllocationState AwaitRunning(const std::string& id) {
    return Await(id, [](const AllocationState& s) { return !s.waits && s.launcher_alive[0]; });
  }
  AllocationState AwaitEnd(const std::string& id) {
    return Await(id, [](const AllocationState& s) { return !s.waits && !s.launcher_alive[0]; });
  }

  const base::TemporaryDirectory root_{"tutti-slurm"};
  SlurmCommandsFake slurm_;
  std::unique_ptr<SlurmEngine> engine_;
};

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

TEST_F(SlurmEngineTest, AnEngineThatCameBackFindsWhatItHadSubmitted) {
  ASSERT_TRUE(engine_->Start(Gang("a.1", 2)).ok());
  AwaitRunning("a.1");
  Open();
  EXPECT_THAT(AwaitRunning("a.1").launcher_alive, ElementsAre(true, true));
  EXPECT_EQ(State("a.1").nodes.size(), 2U);
  ASSERT_TRUE(engine_->Start(Gang("a.1", 2)).ok());
  EXPECT_EQ(slurm_.count("sbatch"), 1);
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

TEST_F(SlurmEngineTest, AControllerThatIsDownIsWaitedForWithItsWords) {
  slurm_.SetFault("sbatch", Fault::kDown);
  slurm_.SetFault("squeue", Fault::kDown);
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  const base::Deadline deadline = base::Deadline::After(absl::Seconds(20));
  while (State("a.1").reason.find("Unable to contact") == std::string::npos) {
    ASSERT_FALSE(deadline.Expired());
    ::usleep(2000);
  }
  slurm_.SetFault("sbatch", Fault::kNone);
  slurm_.SetFault("squeue", Fault::kNone);
  AwaitRunning("a.1");
}

TEST_F(SlurmEngineTest, WhatSlurmRefusesEndsWithItsWords) {
  slurm_.SetFault("sbatch", Fault::kRefuse);
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  const AllocationState end = AwaitEnd("a.1");
  EXPECT_THAT(end.reason, HasSubstr("Slurm refused it: Invalid partition name"));
  EXPECT_FALSE(end.lost);
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

TEST_F(SlurmEngineTest, AJobsSettingsStandOverItsComputes) {
  Allocation gang = Gang("a.1", 2);
  gang.priority = spec::Priority::kLow;
  gang.slurm.partition = "gpu";
  gang.slurm.qos = "high";
  gang.slurm.exclusive = true;
  gang.slurm.options = {"--licenses=x"};
  ASSERT_TRUE(engine_->Start(gang).ok());
  AwaitRunning("a.1");
  const std::vector<std::string> command = slurm_.last_sbatch();
  for (const char* option : {"--partition=gpu", "--qos=high", "--exclusive", "--licenses=x",
                             "--mem=1G", "--nodes=2", "--nice=10000", "--no-requeue"}) {
    EXPECT_THAT(command, Contains(option));
  }
  EXPECT_THAT(command, Not(Contains("--partition=main")));
}

TEST_F(SlurmEngineTest, AScriptsLinesStandForTheJobsOwnShape) {
  Allocation gang = Gang("a.1");
  gang.slurm.shape = {"--nodes=2", "--ntasks=4", "--mem-per-cpu=1G"};
  ASSERT_TRUE(engine_->Start(gang).ok());
  EXPECT_EQ(AwaitRunning("a.1").nodes.size(), 1U);  // of its launcher
  const std::vector<std::string> command = slurm_.last_sbatch();
  EXPECT_THAT(command, Contains("--ntasks=4"));
  EXPECT_THAT(command, Not(Contains(HasSubstr("--cpus-per-task"))));
  EXPECT_THAT(command, Not(Contains("--mem=1G")));  // the two exclude each other
}

// Whose first sbatch ends when it is told to, and each later one when two have been there at once;
// notes who came when.
class CrowdedSlurm final : public SlurmCommands {
 public:
  absl::StatusOr<CommandResult> Run(const std::vector<std::string>& arguments,
                                    base::Deadline deadline) override {
    if (arguments.front() != "sbatch") return fake_.Run(arguments, deadline);
    {
      absl::MutexLock lock(&mutex_);
      order_.push_back(arguments.back());
      most_ = std::max(most_, ++inside_);
      const bool first = order_.size() == 1;
      const auto may_end = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
        return first ? all_are_there_ : most_ > 1;
      };
      mutex_.AwaitWithTimeout(absl::Condition(&may_end), absl::Seconds(20));
    }
    auto result = fake_.Run(arguments, deadline);
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
    options.look_interval = absl::Milliseconds(10);
    engine_ = *SlurmEngine::Open(options, &slurm);
  }
  constexpr int kMany = 40;
  for (int i = 0; i < kMany; ++i) {
    ASSERT_TRUE(engine_->Start(Gang(absl::StrCat("job.", kMany - i))).ok());
  }
  slurm.AllAreThere();
  const base::Deadline deadline = base::Deadline::After(absl::Seconds(30));
  while (slurm.fake_.count("sbatch") < kMany && !deadline.Expired()) ::usleep(1000);
  EXPECT_EQ(slurm.fake_.count("sbatch"), kMany);
  EXPECT_THAT(slurm.most(), AllOf(Gt(1), Le(4)));
  const std::vector<std::string> order = slurm.order();
  // Those that are under way at the same time may overtake each other.
  for (int i = 0; i < kMany; ++i) {
    const auto at = std::find_if(order.begin(), order.end(), [&](const std::string& script) {
      return absl::StrContains(script, absl::StrCat("/job.", kMany - i, "/"));
    });
    EXPECT_LE(std::abs(at - order.begin() - i), 4) << i;
  }
  engine_.reset();  // before the commands that it uses
}

}  // namespace
}  // namespace tutti::engine
