// What the Slurm engine makes of a Slurm that answers late, not at all or twice. What every engine
// promises is in engine_contract_test.cc.
#include "platform/engine/slurm/slurm_engine.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/command.h"
#include "base/file.h"
#include "platform/engine/slurm/batch_job.h"
#include "platform/engine/slurm/program_snapshot.h"
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
using ::testing::SizeIs;
using Fault = SlurmCommandsFake::Fault;

// Remembers what was said last to each command.
class Listening final : public SlurmCommands {
 public:
  explicit Listening(SlurmCommands* commands) : commands_(commands) {}
  absl::StatusOr<CommandResult> Run(const std::vector<std::string>& arguments,
                                    base::Deadline deadline) override {
    absl::MutexLock lock(&mutex_);
    last_[arguments.front()] = arguments;
    return commands_->Run(arguments, deadline);
  }
  std::vector<std::string> last(const std::string& program) {
    absl::MutexLock lock(&mutex_);
    return last_[program];
  }

 private:
  SlurmCommands* const commands_;
  absl::Mutex mutex_;
  std::map<std::string, std::vector<std::string>> last_ ABSL_GUARDED_BY(mutex_);
};

class SlurmEngineTest : public ::testing::Test {
 protected:
  SlurmEngineTest() { Open(); }

  void Open() {
    engine_.reset();
    SlurmEngineOptions options;
    options.compute.folder = root_.path() / "shared";
    options.compute.partition = "main";
    options.compute.memory = "1G";
    options.compute.qos = "standard";
    options.compute.priority_qos = {{"high", "urgent"}};
    options.launcher_file = launcher_file_;
    options.node_folder = node_folder_;
    options.program = "sha256:0123";
    options.launcher = {"/bin/sh", "-c", "exec true"};
    options.compute.reach = reach_;
    options.collector = {"/bin/sh", "-c", "echo $$ \"$@\" >>\"$1.collectors\"; exec sleep 600",
                         "collector"};
    options.look_interval = absl::Milliseconds(10);
    options.settling = absl::Milliseconds(50);
    options.slow_settling = absl::Milliseconds(100);
    options.pause = absl::Milliseconds(20);
    engine_ = *SlurmEngine::Open(options, &listening_);
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

  // From now on launchers are told of a service at that address, and how to reach it.
  void OpenWithService(const std::string& address, spec::Reach reach = spec::Reach::kUnsaid) {
    launcher_file_ = root_.path() / "launcher.json";
    reach_ = reach;
    Announce(address);
    Open();
  }
  spec::LaunchPlan PlanOf(const std::string& id, int node) const {
    return *spec::LaunchPlanFromJson(
        *base::ReadFile(root_.path() / "shared" / id / absl::StrCat(node) / "plan.json"));
  }
  // Those that have been started for the allocation, a line each.
  std::vector<std::string> Collectors(const std::string& id) const {
    const auto text = base::ReadFile(root_.path() / "shared" / (id + ".collectors"));
    return absl::StrSplit(text.value_or(""), '\n', absl::SkipEmpty());
  }
  std::vector<std::string> AwaitCollectors(const std::string& id, size_t count) const {
    const base::Deadline deadline = base::Deadline::After(absl::Seconds(20));
    while (Collectors(id).size() < count && !deadline.Expired()) ::usleep(2000);
    return Collectors(id);
  }

  // From now on the nodes share nothing with the service.
  void OpenUnshared() {
    launcher_file_ = root_.path() / "launcher.json";
    node_folder_ = "/scratch/my disk";
    Announce("http://10.1.0.1:6280");
    Open();
  }
  void Announce(const std::string& address) {
    ASSERT_TRUE(base::WriteFileAtomic(launcher_file_,
                                      R"({"address": ")" + address + R"(", "token": "s3cret"})")
                    .ok());
  }
  std::string Script(const std::string& id) const {
    return base::ReadFile(root_.path() / "shared" / id / "batch.sh").value_or("");
  }

  const base::TemporaryDirectory root_{"tutti-slurm"};
  std::filesystem::path launcher_file_;
  std::string node_folder_;
  spec::Reach reach_ = spec::Reach::kUnsaid;
  SlurmCommandsFake slurm_;
  Listening listening_{&slurm_};
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

TEST_F(SlurmEngineTest, WhatALossOfPowerLeftOfAnAllocationIsMadeWholeBeforeItIsSubmitted) {
  const std::filesystem::path folder = root_.path() / "shared/a.1";
  ASSERT_TRUE(base::MakeDirectories(folder / "0").ok());
  for (const char* file : {"batch.sh", "slurm-id"}) {
    ASSERT_TRUE(base::ReplaceFile(folder / file, "").ok());
  }
  Open();
  ASSERT_TRUE(engine_->Start(Gang("a.1", 2)).ok());
  EXPECT_THAT(AwaitRunning("a.1").launcher_alive, SizeIs(2));
  EXPECT_THAT(*base::ReadFile(folder / "batch.sh"), HasSubstr("srun"));
  EXPECT_EQ(PlanOf("a.1", 1).node_index, 1);
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

TEST_F(SlurmEngineTest, AControllerThatIsDownIsWaitedForWithItsWords) {
  slurm_.SetFault("sbatch", Fault::kDown);
  slurm_.SetFault("squeue", Fault::kDown);
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  const base::Deadline deadline = base::Deadline::After(absl::Seconds(20));
  while (State("a.1").reason !=
         "waits for Slurm, which does not answer: Failed while looking for jobs "
         "(slurm_load_jobs)") {
    ASSERT_FALSE(deadline.Expired());
    ::usleep(2000);
  }
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

TEST_F(SlurmEngineTest, AFolderThatItMadeItselfIsTheUsersAlone) {
  const auto mode_of = [&](const char* name) {
    struct stat info = {};
    EXPECT_EQ(::stat((root_.path() / name).c_str(), &info), 0);
    return info.st_mode & 0777;
  };
  EXPECT_EQ(mode_of("shared"), 0700U);
  ASSERT_EQ(::chmod((root_.path() / "shared").c_str(), 0750), 0);  // the user's own word
  Open();
  EXPECT_EQ(mode_of("shared"), 0750U);
}

TEST_F(SlurmEngineTest, AFolderIsOneServicesAtATime) {
  SlurmEngineOptions options;
  options.compute.folder = root_.path() / "shared";
  const auto second = SlurmEngine::Open(options, &slurm_);
  ASSERT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status().message()),
              AllOf(HasSubstr(absl::StrCat("process ", ::getpid(), " on ")),
                    HasSubstr("give this one another folder")));
  engine_.reset();
  EXPECT_TRUE(SlurmEngine::Open(options, &slurm_).ok());
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

TEST_F(SlurmEngineTest, HowAJobEndedThatSlurmHasForgottenItsAccountingTells) {
  slurm_.KeepAccounts();
  const auto start = [&](const std::string& id, const std::string& job) {
    Allocation gang = Gang(id, 2);
    gang.plans.front().job_id = job;
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

TEST_F(SlurmEngineTest, ASignalThatSlurmDidNotPassOnIsSentAgain) {
  ASSERT_TRUE(engine_->Start(Gang("a.1", 2)).ok());
  AwaitRunning("a.1");
  slurm_.SetFault("scancel", Fault::kDown);
  ASSERT_TRUE(engine_->Stop("a.1", absl::Minutes(10)).ok());
  Await("a.1", [&](const AllocationState&) { return !listening_.last("scancel").empty(); });
  slurm_.SetFault("scancel", Fault::kNone);
  AwaitEnd("a.1");
  EXPECT_THAT(listening_.last("scancel"), ElementsAre("scancel", "--signal=TERM", "1"));
  EXPECT_EQ(slurm_.count("scancel"), 1);
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

TEST_F(SlurmEngineTest, APriorityHasTheQosThatTheComputeGivesIt) {
  const auto qos_of = [&](const std::string& id, spec::Priority priority, const std::string& own) {
    Allocation gang = Gang(id);
    gang.priority = priority;
    gang.slurm.qos = own;
    EXPECT_TRUE(engine_->Start(gang).ok());
    AwaitRunning(id);
    return slurm_.last_sbatch();
  };
  EXPECT_THAT(qos_of("a.1", spec::Priority::kNormal, ""), Contains("--qos=standard"));
  EXPECT_THAT(qos_of("b.1", spec::Priority::kHigh, ""), Contains("--qos=urgent"));
  EXPECT_THAT(qos_of("c.1", spec::Priority::kHigh, "mine"), Contains("--qos=mine"));
  EXPECT_THAT(qos_of("d.1", spec::Priority::kHigh, "none"), Not(Contains(HasSubstr("--qos"))));
}

TEST_F(SlurmEngineTest, LaunchersHaveAllOfExclusiveNodesUnlessANumberIsSaid) {
  Allocation gang = Gang("a.1", 2);
  EXPECT_THAT(SrunScript(gang.slurm, gang), HasSubstr("--cpus-per-task="));
  gang.slurm.exclusive = true;
  EXPECT_THAT(SrunScript(gang.slurm, gang), Not(HasSubstr("--cpus-per-task=")));
  ASSERT_TRUE(engine_->Start(gang).ok());
  AwaitRunning("a.1");
  EXPECT_THAT(slurm_.last_sbatch(), Contains(HasSubstr("--mincpus=")));
  gang.slurm.cpus_per_node = 3;
  EXPECT_THAT(SrunScript(gang.slurm, gang), HasSubstr("--cpus-per-task=3 "));
}

TEST(RealSlurmCommands, KnowTheirClusterAndNothingOfTheJobThatTheyAreIn) {
  const std::vector<std::string> kept = {"SLURM_CONF", "SLURM_JWT", "SLURM_CLUSTERS"};
  const std::vector<std::string> dropped = {"SLURM_JOB_ID", "SBATCH_PARTITION", "SQUEUE_FORMAT"};
  std::map<std::string, std::optional<std::string>> before;
  for (const auto* names : {&kept, &dropped}) {
    for (const std::string& name : *names) {
      const char* const value = std::getenv(name.c_str());
      before[name] = value == nullptr ? std::nullopt : std::optional<std::string>(value);
      ::setenv(name.c_str(), "mine", 1);
    }
  }
  RealSlurmCommands commands;
  const auto ran = commands.Run({"env"}, base::Deadline::After(absl::Seconds(20)));
  for (const auto& [name, value] : before) {
    value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
  }
  ASSERT_TRUE(ran.ok() && ran->exit.ok());
  for (const std::string& name : kept) EXPECT_THAT(ran->out, HasSubstr(name + "=mine\n"));
  for (const std::string& name : dropped) EXPECT_THAT(ran->out, Not(HasSubstr(name)));
}

TEST(SbatchCommand, SaysWhatTheJobAndItsComputeAsk) {
  struct Case {
    const char* what;
    std::function<void(spec::SlurmSettings& compute, Allocation& gang)> set;
    std::vector<std::string> says, says_not;
  };
  const std::vector<Case> cases = {
      {"nothing", [](auto&, auto&) {}, {"--signal=B:TERM@60", "--nice=100"}, {"--time="}},
      {"limits.timeout: a minute, the grace and ten minutes",
       [](auto&, auto& gang) {
         gang.plans[0].timeout_seconds = 60;
         gang.plans[0].grace_seconds = 30;
       },
       {"--time=12"},
       {}},
      {"limits.timeout over the compute's time",
       [](auto& compute, auto& gang) {
         compute.time = "1-00";
         gang.plans[0].timeout_seconds = 60;
         gang.plans[0].grace_seconds = 0;
       },
       {"--time=11"},
       {"--time=1-00"}},
      {"the job's own time over its limits.timeout",
       [](auto&, auto& gang) {
         gang.slurm.time = "00:20:00";
         gang.plans[0].timeout_seconds = 1200;
       },
       {"--time=00:20:00"},
       {"--time=31"}},
      {"the compute's time",
       [](auto& compute, auto&) { compute.time = "2:00:00"; },
       {"--time=2:00:00"},
       {}},
      {"a high priority",
       [](auto&, auto& gang) { gang.priority = spec::Priority::kHigh; },
       {"--nice=0"},
       {}},
      {"a low priority",
       [](auto&, auto& gang) { gang.priority = spec::Priority::kLow; },
       {"--nice=10000"},
       {}},
      {"the compute's words",
       [](auto& compute, auto&) {
         compute.account = "mine";
         compute.gres = "gpu:a100:4";
         compute.reservation = "night";
         compute.constraint = "[rack1|rack2]";
       },
       {"--account=mine", "--gres=gpu:a100:4", "--reservation=night", "--constraint=[rack1|rack2]"},
       {}},
      {"the job's words over them",
       [](auto& compute, auto& gang) {
         compute.account = "mine";
         compute.gres = "gpu:4";
         gang.slurm.account = "ours";
         gang.slurm.gres = "gpu:8";
       },
       {"--account=ours", "--gres=gpu:8"},
       {"--account=mine", "--gres=gpu:4"}},
      {"memory by the processor in place of the compute's by the node",
       [](auto& compute, auto& gang) {
         compute.memory = "4G";
         gang.slurm.options = {"--mem-per-cpu=1G"};
       },
       {"--mem-per-cpu=1G"},
       {"--mem=4G"}},
      {"where memory is to lie beside how much",
       [](auto& compute, auto&) {
         compute.memory = "4G";
         compute.options = {"--mem-bind=local"};
       },
       {"--mem-bind=local", "--mem=4G"},
       {}},
      {"nothing of what the compute asks",
       [](auto& compute, auto& gang) {
         compute.gres = "gpu:4";
         compute.qos = "high";
         compute.time = "1:00:00";
         compute.exclusive = true;
         gang.slurm.gres = gang.slurm.qos = gang.slurm.time = "none";
         gang.slurm.exclusive = false;
       },
       {"--cpus-per-task=1"},
       {"--gres", "--qos", "--time", "--exclusive"}},
      {"two nodes, whose launchers Slurm signals itself",
       [](auto&, auto& gang) { gang.plans.push_back(gang.plans[0]); },
       {"--signal=TERM@60", "--nodes=2", "--ntasks-per-node=1"},
       {}},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.what);
    spec::SlurmSettings compute;
    Allocation gang{.id = "a.1"};
    gang.plans.resize(1);
    one.set(compute, gang);
    const std::vector<std::string> command =
        SbatchCommand(spec::Over(compute, gang.slurm), gang, {.comment = "c", .folder = "/f/a.1"});
    for (const std::string& word : one.says) EXPECT_THAT(command, Contains(word));
    for (const std::string& word : one.says_not) {
      EXPECT_THAT(command, Not(Contains(testing::StartsWith(word))));
    }
  }
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
  // Those that are under way at the same time may overtake each other, and one whose sync of the
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

TEST_F(SlurmEngineTest, WhatNodesThatShareNothingNeedTravelsInTheScriptAlone) {
  OpenUnshared();
  ASSERT_TRUE(engine_->Start(Gang("a.1", 2)).ok());
  AwaitRunning("a.1");
  const std::string script = Script("a.1");
  for (const char* part : {"token='s3cret'", "host='10.1.0.1'", "port='6280'", "sha256:0123",
                           "/scratch/my disk/tutti-", "\"job_id\":\"j\""}) {
    EXPECT_THAT(script, HasSubstr(part));
  }
  struct stat info = {};
  ASSERT_EQ(::stat((root_.path() / "shared/a.1/batch.sh").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700U);
  const std::vector<std::string> command = slurm_.last_sbatch();
  EXPECT_THAT(command, Contains("--output=/dev/null"));
  EXPECT_THAT(command, Contains("--chdir=/"));
  EXPECT_THAT(command, Not(Contains(HasSubstr("s3cret"))));
  EXPECT_FALSE(std::filesystem::exists(root_.path() / "shared/launcher.json"));
}

TEST_F(SlurmEngineTest, TheScriptsSecretComesToNoEnvironment) {
  OpenUnshared();
  ASSERT_TRUE(engine_->Start(Gang("a.1", 2)).ok());
  AwaitRunning("a.1");
  const std::string script = Script("a.1");
  EXPECT_THAT(script.substr(script.find("bash -c \"$share\"")), HasSubstr("export -n token"));
  base::ChildOptions bash;
  bash.arguments = {"bash", "-c", script.substr(0, script.find("# call METHOD")) + "\nenv"};
  bash.environment = base::CurrentEnvironment();
  for (const char* name : {"token", "service", "plan"}) bash.environment[name] = "the user's";
  bash.directory = "/";
  const auto ran = base::RunCommand(std::move(bash), "", base::Deadline::After(absl::Seconds(20)));
  ASSERT_TRUE(ran.ok() && ran->exit.ok());
  EXPECT_THAT(ran->out, AllOf(HasSubstr("PATH="), Not(HasSubstr("s3cret"))));
}

TEST_F(SlurmEngineTest, LaunchersThatCannotReachTheServiceGoByTheFolderWithOneCollector) {
  OpenWithService("http://127.0.0.1:6280");
  ASSERT_TRUE(engine_->Start(Gang("a.1", 2)).ok());
  AwaitRunning("a.1");
  EXPECT_EQ(PlanOf("a.1", 1).service_file, "");
  EXPECT_FALSE(std::filesystem::exists(root_.path() / "shared/launcher.json"));
  const std::vector<std::string> first = AwaitCollectors("a.1", 1);
  ASSERT_THAT(first, SizeIs(1));
  EXPECT_THAT(first[0], AllOf(HasSubstr("shared/a.1 "), HasSubstr(launcher_file_.native())));
  const int pid = std::atoi(first[0].c_str());
  EXPECT_EQ(::kill(pid, 0), 0);
  Open();  // the next service, which may listen elsewhere, has one of its own
  EXPECT_NE(::kill(pid, 0), 0);
  const std::vector<std::string> both = AwaitCollectors("a.1", 2);
  ASSERT_THAT(both, SizeIs(2));
  ASSERT_TRUE(engine_->Stop("a.1", absl::Seconds(1)).ok());
  AwaitEnd("a.1");
  ASSERT_TRUE(engine_->Release("a.1").ok());
  EXPECT_NE(::kill(std::atoi(both[1].c_str()), 0), 0);
}

TEST_F(SlurmEngineTest, ACollectorThatEndsIsFollowedByAnother) {
  OpenWithService("http://10.1.0.1:6280", spec::Reach::kFolder);
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  const std::vector<std::string> first = AwaitCollectors("a.1", 1);
  ASSERT_THAT(first, SizeIs(1));
  EXPECT_EQ(PlanOf("a.1", 0).service_file, "");
  ASSERT_EQ(::kill(std::atoi(first[0].c_str()), SIGKILL), 0);
  EXPECT_THAT(AwaitCollectors("a.1", 2), SizeIs(2));
}

TEST_F(SlurmEngineTest, LaunchersThatAreToReachTheServiceWaitForAnAddress) {
  OpenWithService("http://127.0.0.1:6280", spec::Reach::kService);
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  Await("a.1", [](const AllocationState& s) {
    return absl::StrContains(s.reason, "which the nodes cannot reach");
  });
  OpenWithService("http://10.1.0.1:6280", spec::Reach::kService);
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  AwaitRunning("a.1");
  EXPECT_THAT(PlanOf("a.1", 0).service_file, HasSubstr("shared/launcher.json"));
  EXPECT_THAT(Collectors("a.1"), IsEmpty());
}

TEST_F(SlurmEngineTest, AServiceThatMovedIsToldToNodesBeforeTheirJobIsSubmitted) {
  slurm_.SetFault("sbatch", Fault::kNothing);
  OpenUnshared();
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  Await("a.1", [](const AllocationState& s) { return s.waits && !s.reason.empty(); });
  Announce("http://10.1.0.1:7000");
  Open();
  slurm_.SetFault("sbatch", Fault::kNone);
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  AwaitRunning("a.1");
  EXPECT_THAT(Script("a.1"), HasSubstr("port='7000'"));
}

TEST_F(SlurmEngineTest, NodesThatShareNothingAreToldToStopByTheScript) {
  OpenUnshared();
  ASSERT_TRUE(engine_->Start(Gang("a.1", 2)).ok());
  AwaitRunning("a.1");
  ASSERT_TRUE(engine_->Stop("a.1", absl::Seconds(1)).ok());
  AwaitEnd("a.1");
  EXPECT_THAT(listening_.last("scancel"), ElementsAre("scancel", "--batch", "--signal=USR1", "1"));
  // Nothing of it lies here that a launcher could deliver.
  ASSERT_TRUE(engine_->Start(Gang("a.1", 2)).ok());
  EXPECT_THAT(State("a.1").launcher_alive, ElementsAre(false, false));
}

TEST_F(SlurmEngineTest, AnAddressThatABareShellCannotSpeakIsRefused) {
  OpenUnshared();
  Announce("https://service.example");
  EXPECT_EQ(engine_->Start(Gang("a.1")).code(), absl::StatusCode::kInvalidArgument);
}

TEST(ProgramSnapshot, RunsFromWhereItIsUnpackedWithTheLibrariesThatItBrought) {
  const base::TemporaryDirectory root("tutti-program");
  const auto name = PackThisProgram(root.path());
  ASSERT_TRUE(name.ok()) << name.status();
  const std::filesystem::path archive = root.path() / ("sha256-" + name->substr(7));
  const auto run = [&](std::vector<std::string> arguments) {
    base::ChildOptions options;
    options.arguments = std::move(arguments);
    options.environment = {{"PATH", "/usr/bin:/bin"},
                           {"LD_LIBRARY_PATH", root.path() / "lib"},
                           {"LD_TRACE_LOADED_OBJECTS", "1"}};
    options.directory = "/";
    return *base::RunCommand(std::move(options), "", base::Deadline::After(absl::Seconds(60)));
  };
  base::ChildOptions tar;
  tar.arguments = {"tar", "-xzf", archive, "-C", root.path()};
  tar.environment = base::CurrentEnvironment();
  tar.directory = "/";
  ASSERT_TRUE(
      base::RunCommand(std::move(tar), "", base::Deadline::After(absl::Seconds(60)))->exit.ok());
  // This test itself looks for its libraries where the environment says; tutti needs no such
  // hint.
  const base::CommandResult loaded = run({root.path() / "tutti"});
  EXPECT_THAT(loaded.out, HasSubstr("libstdc++.so.6 => " + (root.path() / "lib").native()));
  EXPECT_THAT(loaded.out, Not(HasSubstr("not found")));
  EXPECT_FALSE(std::filesystem::exists(root.path() / "lib/libc.so.6"));
  const auto again = PackThisProgram(root.path());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, *name);
}

TEST_F(SlurmEngineTest, ListsTheNodesThatSlurmTellsOf) {
  const auto nodes = engine_->ListNodes();
  ASSERT_EQ(nodes.status(), absl::OkStatus());
  ASSERT_THAT(*nodes, SizeIs(2));
  EXPECT_EQ(nodes->front().name, "n1");
  EXPECT_EQ(nodes->front().state, "running");
  slurm_.SetFault("sinfo", Fault::kDown);
  EXPECT_THAT(engine_->ListNodes().status(),
              AllOf(testing::Property(&absl::Status::code, absl::StatusCode::kUnavailable),
                    testing::Property(&absl::Status::message, HasSubstr("Unable to contact"))));
}

}  // namespace
}  // namespace tutti::engine
