// These tests check what every engine promises, over each implementation.
// Covers: engine.h, deferred_engine.cc, local/local_engine.cc, slurm/slurm_engine.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/test_patience.h"
#include "platform/engine/deferred_engine.h"
#include "platform/engine/fake/engine_fake.h"
#include "platform/engine/gang_for_tests.h"
#include "platform/engine/local/launcher_process.h"
#include "platform/engine/local/local_engine.h"
#include "platform/engine/slurm/slurm_commands_fake.h"
#include "platform/engine/slurm/slurm_engine.h"

namespace tutti::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// An engine of two nodes, and the way to end one of its launchers from outside.
class Subject {
 public:
  virtual ~Subject() = default;
  virtual Engine& engine() = 0;
  virtual void EndLauncher(const std::string& id, int node) = 0;
  // Returns which launchers of a gang of two live when the one of node `ended` has gone.
  virtual std::vector<bool> AliveAfter(int ended) { return {ended != 0, ended != 1}; }
};

class FakeSubject final : public Subject {
 public:
  Engine& engine() override { return engine_; }
  void EndLauncher(const std::string& id, int node) override { engine_.EndLauncher(id, node); }

 private:
  FakeEngine engine_{2};
};

class LocalSubject final : public Subject {
 public:
  LocalSubject() {
    LocalEngineOptions options;
    options.root = root_.path();
    options.node_count = 2;
    options.launcher = {"/bin/sh", "-c", "exec sleep 600"};
    engine_ = *LocalEngine::Open(options);
  }
  ~LocalSubject() override {
    const std::vector<AllocationState> states = *engine_->Observe();
    for (const AllocationState& state : states) {
      for (size_t i = 0; i < state.launcher_alive.size(); ++i) EndLauncher(state.id, i);
    }
  }
  Engine& engine() override { return *engine_; }
  void EndLauncher(const std::string& id, int node) override {
    const auto process =
        ReadLauncherProcess(root_.path() / absl::StrCat("n", node + 1) / id / "launcher");
    if (process) KillAtOnce(*process).IgnoreError();
  }

 private:
  const base::TemporaryDirectory root_{"tutti-contract"};
  std::unique_ptr<LocalEngine> engine_;
};

// Its launchers are one Slurm job's, which ends with the first of them.
class SlurmSubject final : public Subject {
 public:
  SlurmSubject() {
    SlurmEngineOptions options;
    options.compute.folder = root_.path();
    options.launcher = {"/bin/sh", "-c",
                        absl::StrCat("echo $$ >>", pids().native(), "; exec sleep 600")};
    options.poll_interval = absl::Milliseconds(5);
    engine_ = *SlurmEngine::Open(options, &commands_);
  }
  ~SlurmSubject() override {
    // Launchers that were started here, which the engine itself would let go on.
    std::ifstream file(pids());
    for (pid_t pid = 0; file >> pid;) ::kill(pid, SIGKILL);
  }
  Engine& engine() override { return *engine_; }
  void EndLauncher(const std::string& id, int) override { commands_.End(id, "FAILED"); }
  std::vector<bool> AliveAfter(int) override { return {false, false}; }

 private:
  std::filesystem::path pids() const { return root_.path() / "pids"; }

  const base::TemporaryDirectory root_{"tutti-contract"};
  SlurmCommandsFake commands_;
  std::unique_ptr<SlurmEngine> engine_;
};

// Its engine could not be opened at first.
class DeferredSubject final : public Subject {
 public:
  DeferredSubject() {
    EXPECT_FALSE(engine_.Observe().ok());
    clock_.Advance(absl::Seconds(1));
    EXPECT_TRUE(engine_.Observe().ok());
  }
  Engine& engine() override { return engine_; }
  void EndLauncher(const std::string& id, int node) override { opened_->EndLauncher(id, node); }

 private:
  absl::StatusOr<std::unique_ptr<Engine>> Open() {
    if (++tries_ == 1) return absl::UnavailableError("not yet");
    auto engine = std::make_unique<FakeEngine>(2);
    opened_ = engine.get();
    return engine;
  }

  int tries_ = 0;
  FakeEngine* opened_ = nullptr;
  base::ManualClock clock_;
  DeferredEngine engine_{{.open = [this] { return Open(); }}, &clock_};
};

using Maker = std::unique_ptr<Subject> (*)();
template <class T>
std::unique_ptr<Subject> Make() {
  return std::make_unique<T>();
}

class EngineContract : public ::testing::TestWithParam<Maker> {
 protected:
  Allocation Gang(const std::string& id, int size) {
    auto nodes = *engine.ListNodes();
    if (engine.traits().schedules_itself) {  // stand-ins
      nodes.clear();
      for (int i = 0; i < size; ++i) nodes.push_back({.name = "node", .address = "0.0.0.0"});
    }
    return GangOn(nodes, id, size);
  }
  std::vector<bool> Alive(const std::string& id) {
    const auto states = engine.Observe();
    if (!states.ok()) return {};
    for (const AllocationState& state : *states) {
      if (state.id == id) return state.launcher_alive;
    }
    return {};
  }
  bool AwaitAlive(const std::string& id, const std::vector<bool>& expected) {
    return base::AwaitPatiently(absl::Seconds(20), [&] { return Alive(id) == expected; });
  }
  const std::unique_ptr<Subject> subject = GetParam()();
  Engine& engine = subject->engine();
};

TEST_P(EngineContract, ObservesWhatItStartedNodeByNode) {
  EXPECT_THAT(*engine.Observe(), IsEmpty());
  ASSERT_TRUE(engine.Start(Gang("a.1", 2)).ok());
  ASSERT_TRUE(engine.Start(Gang("b.1", 1)).ok());
  EXPECT_TRUE(AwaitAlive("a.1", {true, true}));
  EXPECT_TRUE(AwaitAlive("b.1", {true}));
  subject->EndLauncher("a.1", 1);
  EXPECT_TRUE(AwaitAlive("a.1", subject->AliveAfter(1)));
}

TEST_P(EngineContract, StartIsIdempotentAndReplacesADeadLauncherOnly) {
  ASSERT_TRUE(engine.Start(Gang("a.1", 2)).ok());
  ASSERT_TRUE(engine.Start(Gang("a.1", 2)).ok());
  ASSERT_TRUE(AwaitAlive("a.1", {true, true}));
  subject->EndLauncher("a.1", 0);
  ASSERT_TRUE(AwaitAlive("a.1", subject->AliveAfter(0)));
  ASSERT_TRUE(engine.Start(Gang("a.1", 2)).ok());
  EXPECT_THAT(Alive("a.1"), ElementsAre(true, true));
}

TEST_P(EngineContract, AGangForANodeThatDoesNotExistLeavesNothing) {
  if (engine.traits().schedules_itself) GTEST_SKIP() << "it chooses the nodes itself";
  Allocation gang = Gang("a.1", 2);
  gang.plan.nodes[1].name = "n77";
  EXPECT_EQ(engine.Start(gang).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(*engine.Observe(), IsEmpty());
}

TEST_P(EngineContract, ReleasesOnlyWhatHasEndedAndThenKnowsItNoMore) {
  ASSERT_TRUE(engine.Start(Gang("a.1", 1)).ok());
  ASSERT_TRUE(AwaitAlive("a.1", {true}));
  EXPECT_EQ(engine.Release("a.1").code(), absl::StatusCode::kFailedPrecondition);
  subject->EndLauncher("a.1", 0);
  ASSERT_TRUE(AwaitAlive("a.1", {false}));
  EXPECT_TRUE(engine.Release("a.1").ok());
  EXPECT_THAT(*engine.Observe(), IsEmpty());
}

TEST_P(EngineContract, KillEndsALauncherThatDoesNotEndByItself) {
  ASSERT_TRUE(engine.Start(Gang("a.1", 2)).ok());
  ASSERT_TRUE(AwaitAlive("a.1", {true, true}));
  EXPECT_TRUE(engine.Kill("a.1", 1).ok());
  EXPECT_TRUE(AwaitAlive("a.1", subject->AliveAfter(1)));
  EXPECT_TRUE(engine.Kill("a.1", 1).ok());
  EXPECT_TRUE(engine.Kill("a.1", 7).ok());
  EXPECT_TRUE(engine.Kill("no.1", 0).ok());
}

TEST_P(EngineContract, StopAndReleaseOfWhatItDoesNotKnowAreOk) {
  EXPECT_TRUE(engine.Stop("no.1", absl::Seconds(1)).ok());
  EXPECT_TRUE(engine.Release("no.1").ok());
}

std::string SubjectName(const ::testing::TestParamInfo<Maker>& info) {
  static const char* const kNames[] = {"Fake", "Local", "Slurm", "Deferred"};
  return kNames[info.index];
}

INSTANTIATE_TEST_SUITE_P(Engines, EngineContract,
                         ::testing::Values(&Make<FakeSubject>, &Make<LocalSubject>,
                                           &Make<SlurmSubject>, &Make<DeferredSubject>),
                         SubjectName);

}  // namespace
}  // namespace tutti::engine
