// Covers: placed_launcher.cc, usable_cores.cc, node_isolation.cc, launcher_process.cc.
#include "platform/engine/local/local_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/test_patience.h"
#include "platform/engine/gang_for_tests.h"
#include "platform/engine/local/launcher_process.h"

namespace tutti::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A launcher of a few lines of shell: takes the lock, says where it is, makes the marker (last, as
// a part of one that is killed may outlive it), lives until SIGTERM.
constexpr char kLauncher[] =
    "d=$(dirname \"$0\"); [ -e $d/started ] && { echo drained >> $d/facts; exit 0; }; "
    "trap 'exit 0' TERM; read -r stat < /proc/$$/stat; set -- ${stat##*) }; "
    "echo \"{\\\"pid\\\": $$, \\\"start_time\\\": ${20}}\" > $d/lock; [ -e $d/stop ] && exit 0; "
    "(hostname; grep Cpus_allowed_list /proc/self/status; getent hosts $(hostname)) > $d/facts; "
    "touch $d/started; while true; do sleep 0.01; done";

// One that waits for its plan, with a folder that it has made ahead, and takes the lock there.
constexpr char kStandby[] =
    "mkdir -p $0/spool; : > $0/plan.json; touch $0/ready; read -r plan || exit 0; "
    "d=$(dirname $plan); trap 'exit 0' TERM; read -r stat < /proc/$$/stat; set -- ${stat##*) }; "
    "echo \"{\\\"pid\\\": $$, \\\"start_time\\\": ${20}}\" > $d/lock; touch $d/started; "
    "while true; do sleep 0.01; done";

class LocalEngineTest : public ::testing::Test {
 protected:
  std::unique_ptr<LocalEngine> Open(int nodes = 2,
                                    std::vector<std::string> launcher = {"/bin/bash", "-c",
                                                                         kLauncher},
                                    std::vector<std::string> standby = {}) {
    LocalEngineOptions options;
    options.root = root.path();
    options.node_count = nodes;
    options.launcher = std::move(launcher);
    options.standby = std::move(standby);
    auto engine = LocalEngine::Open(options);
    EXPECT_TRUE(engine.ok()) << engine.status();
    return *std::move(engine);
  }
  static Allocation Gang(Engine& engine, const std::string& id, int size) {
    return GangOn(*engine.ListNodes(), id, size);
  }
  std::filesystem::path Folder(int node, const std::string& id) const {
    return root.path() / absl::StrCat("n", node) / id;
  }
  bool AwaitFacts(const std::string& id, int nodes) const {
    return base::AwaitPatiently(absl::Seconds(20), [&] {
      for (int node = 1; node <= nodes; ++node) {
        const auto facts = base::ReadFile(Folder(node, id) / "facts");
        if (!facts.ok() || !absl::StrContains(*facts, "127.77")) return false;
      }
      return true;
    });
  }
  static std::vector<bool> Alive(Engine& engine, const std::string& id) {
    const std::vector<AllocationState> states = *engine.Observe();
    for (const AllocationState& state : states) {
      if (state.id == id) return state.launcher_alive;
    }
    return {};
  }
  void EndAll(Engine& engine, const std::string& id) {
    EXPECT_TRUE(engine.Stop(id, absl::Seconds(1)).ok());
    EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] {
      const std::vector<bool> alive = Alive(engine, id);
      return std::find(alive.begin(), alive.end(), true) == alive.end();
    }));
  }

  const base::TemporaryDirectory root{"tutti-engine"};
};

TEST_F(LocalEngineTest, EachNodeHasItsOwnNameAddressProcessorsAndShare) {
  auto engine = Open();
  const auto nodes = *engine->ListNodes();
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0].name, "n1");
  EXPECT_EQ(nodes[1].address, "127.77.0.2");
  EXPECT_GT(nodes[0].memory_bytes, 0);
  ASSERT_TRUE(engine->Start(Gang(*engine, "job.1", 2)).ok());
  if (::geteuid() == 0 && ProbeIsolation(root.path() / "hosts") != Isolation::kNone) {
    ASSERT_TRUE(AwaitFacts("job.1", 2));
    for (int node : {1, 2}) {
      const std::string facts = *base::ReadFile(Folder(node, "job.1") / "facts");
      EXPECT_THAT(facts, testing::StartsWith(absl::StrCat("n", node, "\n")));
      EXPECT_THAT(facts, HasSubstr(absl::StrCat("127.77.0.", node)));
    }
  }
  EXPECT_THAT(Alive(*engine, "job.1"), ElementsAre(true, true));
  EndAll(*engine, "job.1");
  EXPECT_TRUE(engine->Release("job.1").ok());
  EXPECT_FALSE(std::filesystem::exists(Folder(1, "job.1")));
}

TEST_F(LocalEngineTest, LaunchersOutliveTheEngineAndAreFoundAgain) {
  auto engine = Open();
  ASSERT_TRUE(engine->Start(Gang(*engine, "job.1", 2)).ok());
  ASSERT_TRUE(base::AwaitPatiently(
      absl::Seconds(20), [&] { return std::filesystem::exists(Folder(2, "job.1") / "started"); }));
  engine = Open();
  EXPECT_THAT(Alive(*engine, "job.1"), ElementsAre(true, true));
  // Starting it once more changes nothing.
  const auto before = ReadLauncherProcess(Folder(1, "job.1") / "launcher");
  ASSERT_TRUE(engine->Start(Gang(*engine, "job.1", 2)).ok());
  EXPECT_EQ(ReadLauncherProcess(Folder(1, "job.1") / "launcher")->pid, before->pid);
  EXPECT_EQ(engine->Release("job.1").code(), absl::StatusCode::kFailedPrecondition);
  EndAll(*engine, "job.1");
}

TEST_F(LocalEngineTest, AfterKill9AStartBringsASecondLauncherUnlessTheFirstWasDone) {
  auto engine = Open();
  const Allocation gang = Gang(*engine, "job.1", 2);
  ASSERT_TRUE(engine->Start(gang).ok());
  for (int node : {1, 2}) {
    ASSERT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] {
      return std::filesystem::exists(Folder(node, "job.1") / "started");
    }));
    ASSERT_TRUE(KillAtOnce(*ReadLauncherProcess(Folder(node, "job.1") / "launcher")).ok());
  }
  ASSERT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] {
    return Alive(*engine, "job.1") == std::vector<bool>{false, false};
  }));
  ASSERT_TRUE(base::WriteFileAtomic(Folder(1, "job.1") / "done", "").ok());
  ASSERT_TRUE(engine->Start(gang).ok());
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] {
    const auto facts = base::ReadFile(Folder(2, "job.1") / "facts");
    return facts.ok() && absl::StrContains(*facts, "drained");
  }));
  EXPECT_FALSE(
      absl::StrContains(base::ReadFile(Folder(1, "job.1") / "facts").value_or(""), "drained"));
  EndAll(*engine, "job.1");
}

// A launcher that notes containers, and stays until it is killed; those of n1 are there until the
// played podman is told to work.
constexpr char kWithContainers[] =
    "d=$(dirname \"$0\"); [ -e $d/started ] && { echo drained >> $d/facts; exit 0; }; "
    "echo tutti-x-0 > $d/containers; touch $d/started; exec sleep 600";

TEST_F(LocalEngineTest, ALauncherThatWasKilledIsThereUntilItsContainersAreRemoved) {
  const base::TemporaryDirectory bin;
  const auto write = [&](const std::string& name, const std::string& text) {
    ASSERT_TRUE(base::WriteFileAtomic(bin.path() / name, text, 0755).ok());
  };
  write("podman",
        "#!/bin/sh\n[ -e ${0%/*}/works ] && { echo '[]'; exit; }\n"
        "echo 'Error: its storage is locked' >&2\nexit 125\n");
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", absl::StrCat(bin.path().string(), ":", path).c_str(), 1);
  auto engine = Open(1, {"/bin/bash", "-c", kWithContainers});
  Allocation gang = Gang(*engine, "job.1", 1);
  gang.plan.environment.image.reference = "a.example/b:1";
  ASSERT_TRUE(engine->Start(gang).ok());
  EXPECT_TRUE(std::filesystem::exists(root.path() / "containers"));
  ASSERT_TRUE(base::AwaitPatiently(
      absl::Seconds(20), [&] { return std::filesystem::exists(Folder(1, "job.1") / "started"); }));
  const LauncherProcess launcher = *ReadLauncherProcess(Folder(1, "job.1") / "launcher");
  ASSERT_TRUE(KillAtOnce(launcher).ok());
  ASSERT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] { return !IsAlive(launcher); }));
  ASSERT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] {
    return engine->Observe()->front().left ==
           "the containers on n1 of a launcher that died: podman rm: its storage is locked";
  }));
  EXPECT_THAT(Alive(*engine, "job.1"), ElementsAre(true));
  EXPECT_TRUE(absl::IsFailedPrecondition(engine->Release("job.1")));
  ASSERT_TRUE(engine->Start(gang).ok());
  EXPECT_EQ(*ReadLauncherProcess(Folder(1, "job.1") / "launcher"), launcher) << "no second one";
  write("works", "");
  engine = Open(1, {"/bin/bash", "-c", kWithContainers});  // which finds them, and tries at once
  ASSERT_TRUE(base::AwaitPatiently(
      absl::Seconds(20), [&] { return Alive(*engine, "job.1") == std::vector<bool>{false}; }));
  EXPECT_EQ(engine->Observe()->front().left, "");
  ASSERT_TRUE(engine->Start(gang).ok());
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] {
    return base::ReadFile(Folder(1, "job.1") / "facts").value_or("") == "drained\n";
  }));
  ::setenv("PATH", path.c_str(), 1);
}

TEST_F(LocalEngineTest, SaysWhatAnAllocationHasOfItsNodesAlsoWhenItIsOpenedAnew) {
  auto engine = Open();
  Allocation part = Gang(*engine, "part.1", 1);
  part.nodes[0].cores = {0};
  part.nodes[0].memory_bytes = int64_t{1} << 30;
  part.nodes[0].gpus = {"4"};
  ASSERT_TRUE(engine->Start(part).ok());
  ASSERT_TRUE(engine->Start(Gang(*engine, "whole.1", 2)).ok());
  for (const bool anew : {false, true}) {
    if (anew) engine = Open();
    const std::vector<AllocationState> states = *engine->Observe();
    ASSERT_EQ(states.size(), 2u);
    ASSERT_EQ(states[0].occupied.size(), 1u);
    EXPECT_EQ(states[0].occupied[0].name, "n1");
    EXPECT_THAT(states[0].occupied[0].cores, ElementsAre(0));
    EXPECT_EQ(states[0].occupied[0].memory_bytes, int64_t{1} << 30);
    EXPECT_THAT(states[0].occupied[0].gpus, ElementsAre("4"));
    ASSERT_EQ(states[1].occupied.size(), 2u);
    EXPECT_EQ(states[1].occupied[1].name, "n2");
    EXPECT_TRUE(states[1].occupied[1].cores.empty());
  }
  EndAll(*engine, "part.1");
  EndAll(*engine, "whole.1");
}

TEST_F(LocalEngineTest, WhatAPowerFailureLeftWithoutAPlanDoesNotStay) {
  Open();
  std::filesystem::create_directories(Folder(1, "empty.1"));
  std::filesystem::create_directories(Folder(1, "cut.1"));
  ASSERT_TRUE(base::WriteFileAtomic(Folder(1, "cut.1") / "plan.json", "").ok());
  std::filesystem::create_directories(Folder(2, "begun.1"));
  ASSERT_TRUE(base::WriteFileAtomic(Folder(2, "begun.1") / "plan.json", "{\"jo").ok());
  ASSERT_TRUE(base::WriteFileAtomic(Folder(2, "begun.1") / "started", "").ok());
  auto engine = Open();
  EXPECT_FALSE(std::filesystem::exists(Folder(1, "empty.1")));
  EXPECT_FALSE(std::filesystem::exists(Folder(1, "cut.1")));
  // Whether its job still wants what it wrote is the service's to know.
  EXPECT_THAT(Alive(*engine, "begun.1"), ElementsAre(false));
  EXPECT_EQ(engine->Observe()->front().occupied.at(0).name, "n2");
  EXPECT_TRUE(engine->Release("begun.1").ok());
  EXPECT_FALSE(std::filesystem::exists(Folder(2, "begun.1")));
  EXPECT_TRUE(engine->Observe()->empty());
}

TEST_F(LocalEngineTest, AnAllocationsFolderIsTheOneThatWasMadeAheadOnItsNode) {
  auto engine = Open(2, {"/bin/bash", "-c", kLauncher}, {"/bin/bash", "-c", kStandby});
  for (const char* node : {"n1", "n2"}) {
    ASSERT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] {
      return std::filesystem::exists(root.path() / node / ".ahead" / "ready");
    }));
  }
  const Allocation gang = Gang(*engine, "job.1", 1);
  ASSERT_TRUE(engine->Start(gang).ok());
  EXPECT_TRUE(std::filesystem::exists(Folder(1, "job.1") / "ready"));
  EXPECT_TRUE(std::filesystem::exists(root.path() / "n2" / ".ahead" / "ready"));
  EXPECT_EQ(*base::ReadFile(Folder(1, "job.1") / "plan.json"),
            spec::ToJson(spec::PlanFor(gang.plan, gang.nodes[0])));
  ASSERT_TRUE(base::AwaitPatiently(
      absl::Seconds(20), [&] { return std::filesystem::exists(Folder(1, "job.1") / "started"); }));
  engine = Open();  // which takes nothing else for an allocation
  EXPECT_EQ(engine->Observe()->size(), 1u);
  EndAll(*engine, "job.1");
}

TEST_F(LocalEngineTest, AFolderMadeAheadIsOfNoUseWithoutTheOneThatMadeIt) {
  ASSERT_TRUE(base::MakeDirectories(root.path() / "n1" / ".ahead" / "spool").ok());
  auto engine = Open();
  ASSERT_TRUE(engine->Start(Gang(*engine, "job.1", 1)).ok());
  EXPECT_FALSE(std::filesystem::exists(Folder(1, "job.1") / "spool"));
  EndAll(*engine, "job.1");
}

TEST_F(LocalEngineTest, AnAllocationWithAnEmptyPlanIsNoOnes) {
  std::filesystem::create_directories(Folder(1, "cut.1"));
  ASSERT_TRUE(base::WriteFileAtomic(Folder(1, "cut.1") / "plan.json", "").ok());
  // The standby whose folder it was to be may live a moment longer than its engine.
  const LauncherProcess own{::getpid(), *base::ProcessStartTime(::getpid())};
  ASSERT_TRUE(WriteLauncherProcess(Folder(1, "cut.1") / "lock", own).ok());
  auto engine = Open();
  EXPECT_FALSE(std::filesystem::exists(Folder(1, "cut.1")));
  ASSERT_TRUE(engine->Start(Gang(*engine, "cut.1", 1)).ok());
  EXPECT_THAT(Alive(*engine, "cut.1"), ElementsAre(true));
  EndAll(*engine, "cut.1");
}

TEST_F(LocalEngineTest, AllNodesOrNone) {
  auto engine = Open();
  // On the second node the allocation's folder cannot be made.
  ASSERT_TRUE(base::WriteFileAtomic(root.path() / "n2" / "job.1", "a file").ok());
  const Allocation gang = Gang(*engine, "job.1", 2);
  const absl::Status status = engine->Start(gang);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("starting on n2"));
  EXPECT_TRUE(engine->Observe()->empty());
  EXPECT_FALSE(std::filesystem::exists(Folder(1, "job.1")));
  // And it can be tried again.
  std::filesystem::remove(root.path() / "n2" / "job.1");
  EXPECT_TRUE(engine->Start(gang).ok());
  EndAll(*engine, "job.1");
}

TEST_F(LocalEngineTest, NodesOfAGangShareOneDocumentAsLongAsThereIsOneOfThem) {
  const std::filesystem::path shared = root.path() / "shared" / "job.1.json";
  auto engine = Open();
  const Allocation gang = Gang(*engine, "job.1", 2);
  ASSERT_TRUE(engine->Start(gang).ok());
  for (int node = 0; node < 2; ++node) {
    const std::filesystem::path file = Folder(node + 1, "job.1") / "plan.json";
    EXPECT_EQ(base::ReadFile(file)->find("127.77"), std::string::npos);
    const auto plan = spec::ReadLaunchPlan(file);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(spec::ToJson(*plan), spec::ToJson(spec::PlanFor(gang.plan, gang.nodes[node])));
  }
  ASSERT_TRUE(base::WriteFileAtomic(root.path() / "shared" / "gone.1.json", "{}").ok());
  engine = Open();
  EXPECT_FALSE(std::filesystem::exists(root.path() / "shared" / "gone.1.json"));
  ASSERT_TRUE(std::filesystem::exists(shared));
  EndAll(*engine, "job.1");
  EXPECT_TRUE(engine->Release("job.1").ok());
  EXPECT_FALSE(std::filesystem::exists(shared));
}

TEST_F(LocalEngineTest, TakesOverAGangWhosePlansAreWholeAsEarlierVersionsWroteThem) {
  auto engine = Open();
  const Allocation gang = Gang(*engine, "job.1", 2);
  for (int node = 0; node < 2; ++node) {
    const std::filesystem::path folder = Folder(node + 1, "job.1");
    std::filesystem::create_directories(folder);
    const std::string whole = spec::ToJson(spec::PlanFor(gang.plan, gang.nodes[node]));
    ASSERT_TRUE(base::WriteFileAtomic(folder / "plan.json", whole).ok());
    ASSERT_TRUE(base::WriteFileAtomic(folder / "started", "").ok());
  }
  engine = Open();
  EXPECT_THAT(Alive(*engine, "job.1"), ElementsAre(false, false));
  ASSERT_TRUE(engine->Start(gang).ok());
  for (int node = 1; node <= 2; ++node) {  // it finds the marker, delivers and ends at once
    EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] {
      return base::ReadFile(Folder(node, "job.1") / "facts").value_or("") == "drained\n";
    }));
  }
  EndAll(*engine, "job.1");
}

TEST_F(LocalEngineTest, AFailedSecondStartKeepsWhatTheFirstLauncherLeft) {
  auto engine = Open(1);
  const Allocation gang = Gang(*engine, "job.1", 1);
  ASSERT_TRUE(engine->Start(gang).ok());
  ASSERT_TRUE(base::AwaitPatiently(
      absl::Seconds(20), [&] { return std::filesystem::exists(Folder(1, "job.1") / "started"); }));
  ASSERT_TRUE(KillAtOnce(*ReadLauncherProcess(Folder(1, "job.1") / "launcher")).ok());
  ASSERT_TRUE(base::AwaitPatiently(
      absl::Seconds(20), [&] { return Alive(*engine, "job.1") == std::vector<bool>{false}; }));
  engine = Open(1, {"/no/such/launcher"});
  EXPECT_FALSE(engine->Start(gang).ok());
  EXPECT_TRUE(std::filesystem::exists(Folder(1, "job.1") / "started"));
  EXPECT_THAT(Alive(*engine, "job.1"), ElementsAre(false));
}

TEST_F(LocalEngineTest, AStopReachesALauncherThatDoesNotListenYetAndTheOneThatFollowsIt) {
  auto engine = Open(1);
  const Allocation gang = Gang(*engine, "job.1", 1);
  ASSERT_TRUE(engine->Start(gang).ok());
  ASSERT_TRUE(engine->Stop("job.1", absl::Seconds(1)).ok());  // bash has hardly begun
  EXPECT_TRUE(base::AwaitPatiently(
      absl::Seconds(20), [&] { return Alive(*engine, "job.1") == std::vector<bool>{false}; }));
  std::filesystem::remove(Folder(1, "job.1") / "started");
  std::filesystem::remove(Folder(1, "job.1") / "facts");
  ASSERT_TRUE(engine->Start(gang).ok());
  EXPECT_TRUE(base::AwaitPatiently(
      absl::Seconds(20), [&] { return Alive(*engine, "job.1") == std::vector<bool>{false}; }));
  EXPECT_FALSE(std::filesystem::exists(Folder(1, "job.1") / "facts"));
}

TEST_F(LocalEngineTest, AJobThatRemovesItsFolderIsNeitherTakenForDeadNorRunAgain) {
  auto engine = Open(1);
  const Allocation gang = Gang(*engine, "job.1", 1);
  ASSERT_TRUE(engine->Start(gang).ok());
  ASSERT_TRUE(AwaitFacts("job.1", 1) || ::geteuid() != 0);
  // The launcher may still write there while it is removed.
  ASSERT_TRUE(base::AwaitPatiently(absl::Seconds(20),
                                   [&] { return base::RemoveTree(Folder(1, "job.1")).ok(); }));
  EXPECT_THAT(Alive(*engine, "job.1"), ElementsAre(true));
  EndAll(*engine, "job.1");
  EXPECT_EQ(engine->Start(gang).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(engine->Start(gang).code(), absl::StatusCode::kDataLoss);
  EXPECT_FALSE(std::filesystem::exists(Folder(1, "job.1")));
  EXPECT_TRUE(engine->Release("job.1").ok());
}

TEST_F(LocalEngineTest, ALauncherThatCannotBeExecutedIsAnErrorThatNamesIt) {
  auto engine = Open(1, {"/no/such/launcher"});
  const absl::Status status = engine->Start(Gang(*engine, "job.1", 1));
  EXPECT_THAT(std::string(status.message()), HasSubstr("/no/such/launcher"));
  EXPECT_FALSE(std::filesystem::exists(Folder(1, "job.1")));
}

TEST_F(LocalEngineTest, RefusesPlansForOtherFoldersAndNamesThatLeaveTheRoot) {
  auto engine = Open();
  Allocation gang = Gang(*engine, "job.1", 1);
  gang.nodes[0].directory = "/tmp/elsewhere";
  EXPECT_EQ(engine->Start(gang).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(engine->Start({"../x", {}}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(engine->Observe()->empty());
}

TEST(ShareOfTest, SharesAreDisjointAndCoverAllUntilThereAreMoreNodesThanProcessors) {
  EXPECT_THAT(ShareOf({0, 1, 2, 3, 4}, 0, 2), ElementsAre(0, 1));
  EXPECT_THAT(ShareOf({0, 1, 2, 3, 4}, 1, 2), ElementsAre(2, 3, 4));
  EXPECT_THAT(ShareOf({4, 5}, 2, 3), ElementsAre(4));
  EXPECT_THAT(ShareOf({4, 5}, 1, 3), ElementsAre(5));
}

TEST(ShareOfTest, NodesOfSoManyProcessorsShareThoseOfWhichThereAreTooFew) {
  EXPECT_THAT(TurnOf({4, 5}, 0, 2), ElementsAre(4, 5));
  EXPECT_THAT(TurnOf({4, 5}, 1, 2), ElementsAre(4, 5));
  EXPECT_THAT(TurnOf({0, 1, 2}, 1, 2), ElementsAre(0, 2));
  EXPECT_THAT(TurnOf({0, 1, 2, 3}, 1, 2), ElementsAre(2, 3));
}

TEST(HostsFileTest, NodesComeFirstAndOnlyOnce) {
  EXPECT_EQ(
      HostsFile("127.0.0.1 localhost\n10.0.0.1 n1 other\n10.0.0.2 n10\n", {{"n1", "127.77.0.1"}}),
      "127.77.0.1 n1\n127.0.0.1 localhost\n10.0.0.2 n10\n");
}

}  // namespace
}  // namespace tutti::engine
