// Launchers of gangs on a cluster that promised signs of life, and give none.
// Covers: allocation/launcher_silence.cc, allocation/observer.cc.
#include <gmock/gmock.h>

#include <map>

#include "absl/strings/str_replace.h"
#include "platform/service/cluster_for_tests.h"
#include "platform/service/world_for_tests.h"

namespace tutti::service {
namespace {

using store::JobState;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

constexpr absl::Duration kStep = absl::Seconds(20);
const std::string kGang = absl::StrReplaceAll(kJobFile, {{"timeout: 60", "timeout: 1000000"}}) +
                          "retry_settings: {max_retries: 1}\ncompute: hpc\n";

class SilenceTest : public ::testing::Test {
 protected:
  SilenceTest() {
    DiskEngine::Put(folder_.path() / "site.yml",
                    "computes: {hpc: {type: slurm, folder: ./shared}}\n");
    cluster_.runs = true;
  }

  // Takes a gang of two as far as its ranks run.
  void Begin(const std::string& promise = R"(, "beat": 60)") {
    ASSERT_EQ(world_.Submit(kGang).status(), absl::OkStatus());
    ASSERT_TRUE(world_.StepUntilState("j", JobState::kProvisioning));
    for (int node : {0, 1}) {
      Say(node, {absl::StrCat(R"({"kind": "preparing")", promise, "}"), R"({"kind": "prepared"})",
                 absl::StrCat(R"({"kind": "started", "rank": )", node, "}")});
    }
    ASSERT_EQ(world_.State("j"), JobState::kRunning);
  }
  void Say(int node, const std::vector<std::string>& events) {
    const int64_t first = static_cast<int64_t>(said_[node]) + 1;
    EXPECT_TRUE(world_.service().ReportEvents("j.1", node, first, events).ok());
    said_[node] += events.size();
    world_.Step();
  }
  void Finish(int node) {
    Say(node, {absl::StrCat(R"({"kind": "exited", "code": 0, "rank": )", node, "}"),
               R"({"kind": "finished"})"});
  }
  // Takes another gang, whose allocation is k.2, until its launchers prepare.
  void BeginAnother() {
    ASSERT_EQ(world_.Submit(absl::StrReplaceAll(kGang, {{"name: j", "name: k"}})).status(),
              absl::OkStatus());
    ASSERT_TRUE(world_.StepUntilState("k", JobState::kProvisioning));
    for (int node : {0, 1}) {
      ASSERT_TRUE(world_.service().ReportEvents("k.2", node, 1, {R"({"kind": "preparing"})"}).ok());
    }
  }
  // Lets that time pass, in which the launchers of those nodes give signs of life.
  void Pass(absl::Duration time, const std::vector<int>& alive = {},
            const std::string& allocation = "j.1") {
    for (absl::Duration at; at < time; at += kStep) {
      for (const int node : alive) EXPECT_TRUE(world_.service().MayGo(allocation, node).ok());
      world_.clock().Advance(kStep);
      world_.Step();
    }
  }
  std::string LastReason() { return world_.Events("j").back().reason; }

  const base::TemporaryDirectory folder_;
  FakeCluster cluster_;
  World world_{folder_.path(), {}, 2, &cluster_};
  std::map<int, size_t> said_;
};

TEST_F(SilenceTest, OneThatGivesNoSignWhileOthersOfItsGangDoIsLost) {
  Begin();
  Pass(absl::Minutes(4), {0});
  EXPECT_EQ(world_.State("j"), JobState::kRunning);
  Pass(absl::Minutes(2), {0});
  EXPECT_EQ(world_.State("j"), JobState::kFinalizing);
  EXPECT_THAT(cluster_.stopped, Contains("j.1"));
  Finish(0);
  cluster_.dead = true;
  ASSERT_TRUE(world_.StepUntil([&] {
    world_.clock().Advance(absl::Seconds(2));
    return world_.State("j") == JobState::kQueued;
  }));
  EXPECT_THAT(LastReason(),
              MatchesRegex("node n2: its launcher has not been heard of since "
                           "2027-01-15T08:00:0[0-9]Z, for 5m[0-9]*s?, while others of the job "
                           "were; it is begun again, attempt 2 of 2"));
  EXPECT_TRUE(world_.StepUntil([&] { return cluster_.avoid == std::vector<std::string>{"n2"}; }));
}

TEST_F(SilenceTest, WhileNobodyIsHeardOfNobodyIsLostAndThenTheCountBeginsAnew) {
  Begin();
  Pass(absl::Hours(1));
  EXPECT_EQ(world_.State("j"), JobState::kRunning) << "the network may have been away";
  Pass(absl::Minutes(4), {0});
  EXPECT_EQ(world_.State("j"), JobState::kRunning) << "the other may come later";
  Pass(absl::Minutes(2), {0});
  EXPECT_EQ(world_.State("j"), JobState::kFinalizing);
}

TEST_F(SilenceTest, AServiceThatHasJustStartedCountsAnew) {
  Begin();
  Pass(absl::Minutes(4), {0});
  world_.Open();
  Pass(absl::Minutes(4), {0});
  EXPECT_EQ(world_.State("j"), JobState::kRunning);
  Pass(absl::Minutes(2), {0});
  EXPECT_EQ(world_.State("j"), JobState::kFinalizing);
}

TEST_F(SilenceTest, WhoSleepsWithTheServiceIsNotLost) {
  Begin();
  Finish(0);
  world_.clock().Advance(absl::Hours(48));
  world_.Step();
  EXPECT_EQ(world_.State("j"), JobState::kRunning);
  Pass(absl::Minutes(10), {1});
  EXPECT_EQ(world_.State("j"), JobState::kRunning);
}

TEST_F(SilenceTest, OneThatPromisedNothingIsLeftToItsCluster) {
  Begin(/*promise=*/"");
  Pass(absl::Hours(1), {0});
  EXPECT_EQ(world_.State("j"), JobState::kRunning);
}

TEST_F(SilenceTest, TheLastOfItsGangIsJudgedBesideThoseOfOtherJobs) {
  Begin();
  Finish(0);
  Pass(absl::Hours(1));
  EXPECT_EQ(world_.State("j"), JobState::kRunning);
  BeginAnother();
  Pass(absl::Minutes(4), {0, 1}, "k.2");
  EXPECT_EQ(world_.State("j"), JobState::kRunning);
  Pass(absl::Minutes(2), {0, 1}, "k.2");
  EXPECT_EQ(world_.State("j"), JobState::kFinalizing);
  EXPECT_THAT(LastReason(), HasSubstr(", while those of other jobs were"));
}

// As where both nodes have died, and Slurm has lost its word of that.
TEST_F(SilenceTest, AGangOfWhichNobodyIsHeardOfIsLostBesideOtherJobsAfterHalfAnHour) {
  Begin();
  BeginAnother();
  Pass(absl::Minutes(29), {0, 1}, "k.2");
  EXPECT_EQ(world_.State("j"), JobState::kRunning) << "their part of the network may be away";
  Pass(absl::Minutes(2), {0, 1}, "k.2");
  EXPECT_EQ(world_.State("j"), JobState::kFinalizing);
  EXPECT_THAT(cluster_.stopped, Contains("j.1"));
  EXPECT_THAT(LastReason(), HasSubstr(", while those of other jobs were"));
}

TEST_F(SilenceTest, AGangBesideWhichNobodyIsHeardOfIsLostAfterADay) {
  Begin();
  Pass(absl::Hours(22));
  EXPECT_EQ(world_.State("j"), JobState::kRunning);
  ASSERT_TRUE(world_.StepUntil([&] {
    world_.clock().Advance(kStep);
    return world_.State("j") == JobState::kFinalizing;
  }));
  EXPECT_THAT(LastReason(), HasSubstr("while this service was there for it"));
}

TEST_F(SilenceTest, OneBesideWhichNobodyIsHeardOfIsLostAfterADay) {
  Begin();
  Finish(0);
  Pass(absl::Hours(22));
  EXPECT_EQ(world_.State("j"), JobState::kRunning);
  ASSERT_TRUE(world_.StepUntil([&] {
    world_.clock().Advance(kStep);
    return world_.State("j") == JobState::kFinalizing;
  }));
  EXPECT_THAT(LastReason(), HasSubstr("while this service was there for it"));
}

TEST_F(SilenceTest, WhatTheClusterHasSuspendedSaysNothingAndIsNotLost) {
  Begin();
  cluster_.suspended = true;
  Pass(absl::Minutes(10), {0});
  EXPECT_EQ(world_.State("j"), JobState::kRunning);
  cluster_.suspended = false;
  Pass(absl::Minutes(4), {0});
  EXPECT_EQ(world_.State("j"), JobState::kRunning);
  Pass(absl::Minutes(2), {0});
  EXPECT_EQ(world_.State("j"), JobState::kFinalizing);
}

// What one has to say waits where the service has no room, and what others say may wait behind it.
TEST_F(SilenceTest, OneWhoseWordsAreRefusedTellsNothingOfTheOthers) {
  Begin();
  for (int i = 0; i < 30; ++i) {
    EXPECT_FALSE(
        world_.service().AppendOutput("j.1", 0, /*rank=*/1, LogStream::kStdout, 0, "x").ok());
    Pass(kStep);
  }
  EXPECT_EQ(world_.State("j"), JobState::kRunning);
  for (uint64_t offset = 0; offset < 18; ++offset) {
    EXPECT_TRUE(world_.service().AppendOutput("j.1", 0, 0, LogStream::kStdout, offset, "x").ok());
    Pass(kStep);
  }
  EXPECT_EQ(world_.State("j"), JobState::kFinalizing);
  EXPECT_THAT(LastReason(), HasSubstr("node n2"));
}

// Others bring what it has left, once the cluster has ended it.
TEST_F(SilenceTest, OneWhoseRanksHaveEndedIsKilledForItsResults) {
  Begin();
  for (int node : {0, 1}) {
    Say(node, {absl::StrCat(R"({"kind": "exited", "code": 0, "rank": )", node, "}"),
               R"({"kind": "finalizing"})"});
  }
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kFinalizing));
  Pass(absl::Minutes(4), {0});
  EXPECT_TRUE(cluster_.killed.empty());
  Pass(absl::Minutes(2), {0});
  EXPECT_THAT(cluster_.killed, Contains("j.1"));
  Say(0, {R"({"kind": "finished"})"});
  Say(1, {R"({"kind": "finished"})"});
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kCompleted));
}

}  // namespace
}  // namespace tutti::service
