// Covers: external_starter.cc, rank_table.cc.
#include "platform/launch/ranks/mpirun_starter.h"

#include <thread>

#include "platform/launch/ranks/starter_fixture.h"

namespace tutti::launch {
namespace {

using ::testing::HasSubstr;

class MpirunStarterTest : public StarterFixture {
 protected:
  std::unique_ptr<RankStarter> Make(const std::string& mpirun = "exec sleep 600\n") {
    return MakeRankStarter(Context(), AgreeOn(MpiWay::kMpirun, mpirun));
  }

  void UseTwoNodes() {
    plan.nodes = {{"n1", "127.77.0.51", 0, 2}, {"n2", "127.77.0.52", 2, 2}};
    plan.start_port = 6105;
    plan.job_token = "abcd";
  }

  // The other launcher of the gang, in a thread, while this one makes its starter.
  std::unique_ptr<RankStarter> MakeBeside(int other_index, std::unique_ptr<GangLink>& other_link) {
    spec::LaunchPlan other_plan = plan;
    other_plan.node_index = other_index;
    std::thread other([&] {
      const std::atomic<bool> cancelled = false;
      other_link = *GangLink::Meet(other_plan, MpiWay::kMpirun, 0, cancelled, Soon());
    });
    auto starter = Make();
    other.join();
    return starter;
  }

  void EndDaemonOnSecondNode(const std::string& daemon, bool with_rank = false) {
    UseTwoNodes();
    plan.node_index = 1;
    std::unique_ptr<GangLink> first;
    const auto starter = MakeBeside(0, first);
    std::optional<LineSocket> rank;
    if (with_rank) {
      rank.emplace(Connect());
      ASSERT_TRUE(rank->Send({{"kind", "rank"}, {"rank", 2}, {"pid", 71}}).ok());
      HandleUntil(*starter, [&] { return ranks->Find(2) != nullptr; });
    }
    ASSERT_TRUE(first->peers().at(1).Send({{"run", daemon}}).ok());
    const auto answered = [&] { return first->peers().at(1).Take()->has_value(); };
    HandleUntil(*starter, answered);
    EXPECT_TRUE(starter->ReapIfOwn(AwaitChild()));
  }
};

TEST_F(MpirunStarterTest, ARankThatConnectsIsToldWhatToRunAndItsEndIsReported) {
  command = "python3 train.py";
  const auto starter = Make();
  LineSocket rank = Connect();
  ASSERT_TRUE(rank.Send({{"kind", "rank"}, {"rank", 1}, {"pid", 71}}).ok());
  HandleUntil(*starter, [&] { return ranks->Find(1) != nullptr; });
  const auto fds = ReceiveFds(rank.fd(), 3, Soon());
  ASSERT_TRUE(fds.ok()) << fds.status();
  const auto start = base::ReadFile("/proc/self/fd/" + std::to_string((*fds)[2].get()));
  EXPECT_THAT(*start, HasSubstr("train.py"));
  EXPECT_EQ(ranks->FindByPid(71), ranks->Find(1));
  EXPECT_TRUE(starter->running()) << "the other rank may come";

  ASSERT_TRUE(rank.Send({{"kind", "ended"}, {"code", 3}, {"signal", 0}}).ok());
  HandleUntil(*starter, [&] { return !ranks->AnyRuns(); });
  ASSERT_EQ(Events("exited").size(), 1u);
  EXPECT_EQ(Events("exited")[0]["code"], 3);
}

TEST_F(MpirunStarterTest, ARankThatTheClusterToldBeforeTheLauncherHasNotFailed) {
  supervisor.cluster_ends_it = true;
  const auto starter = Make();
  for (const int number : {0, 1}) {
    LineSocket rank = Connect();
    ASSERT_TRUE(rank.Send({{"kind", "rank"}, {"rank", number}, {"pid", 71 + number}}).ok());
    HandleUntil(*starter, [&] { return ranks->Find(number) != nullptr; });
    // A rank that ended well had its end before the cluster came.
    ASSERT_TRUE(rank.Send({{"kind", "ended"}, {"code", number}, {"signal", 0}}).ok());
    HandleUntil(*starter, [&] { return ranks->Find(number)->ended(); });
  }
  const std::vector<nlohmann::json> exits = Events("exited");
  ASSERT_EQ(exits.size(), 2u);
  for (const auto& exit : exits) EXPECT_EQ(exit["stopped"], exit["rank"] == 1) << exit;
}

TEST_F(MpirunStarterTest, ARankOfAnotherNodeOrThatCannotStartStopsTheJob) {
  const auto starter = Make();
  LineSocket stray = Connect();
  ASSERT_TRUE(stray.Send({{"kind", "rank"}, {"rank", 7}, {"pid", 71}}).ok());
  HandleUntil(*starter, [&] { return supervisor.stopped(); });
  EXPECT_EQ(supervisor.reason(), "rank 7 was placed on node n1");
  EXPECT_FALSE(supervisor.unlaunched());
}

TEST_F(MpirunStarterTest, TellsWhatMpirunSaidWhenItFails) {
  const auto starter = Make("echo 'Error: no slots' >&2; exit 3\n");
  ASSERT_TRUE(starter->Begin().ok());
  const pid_t child = AwaitChild();
  EXPECT_FALSE(starter->ReapIfOwn(child + 1));
  EXPECT_TRUE(starter->ReapIfOwn(child));
  EXPECT_FALSE(starter->running());
  EXPECT_EQ(supervisor.reason(), "mpirun ended with exit code 3: Error: no slots");
  EXPECT_FALSE(supervisor.told());
}

TEST_F(MpirunStarterTest, SaysWhyItKnowsNotHowMpirunEnded) {
  const auto starter = Make("exit 3\n");
  ASSERT_TRUE(starter->Begin().ok());
  const pid_t child = AwaitChild();
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(starter->ReapIfOwn(child));
  EXPECT_THAT(supervisor.reason(),
              HasSubstr("mpirun ended with a status that could not be read: waitpid "));
  EXPECT_THAT(supervisor.reason(), HasSubstr("No child processes"));
}

TEST_F(MpirunStarterTest, OfAnMpirunThatWasToldToEndAnotherKnowsWhy) {
  const auto starter = Make("kill -TERM $$\n");
  ASSERT_TRUE(starter->Begin().ok());
  EXPECT_TRUE(starter->ReapIfOwn(AwaitChild()));
  EXPECT_EQ(supervisor.reason(), "mpirun ended with signal 15 (SIGTERM)");
  EXPECT_TRUE(supervisor.told());
}

TEST_F(MpirunStarterTest, ARankThatFailedExplainsItsEndBetterThanMpirun) {
  const auto starter = Make("exit 3\n");
  LineSocket rank = Connect();
  ASSERT_TRUE(rank.Send({{"kind", "rank"}, {"rank", 0}, {"pid", 71}}).ok());
  HandleUntil(*starter, [&] { return ranks->Find(0) != nullptr; });
  ASSERT_TRUE(rank.Send({{"kind", "ended"}, {"code", 1}, {"signal", 0}}).ok());
  HandleUntil(*starter, [&] { return ranks->AnyFailed(); });
  ASSERT_TRUE(starter->Begin().ok());
  EXPECT_TRUE(starter->ReapIfOwn(AwaitChild()));
  EXPECT_FALSE(supervisor.stopped());
}

TEST_F(MpirunStarterTest, SaysHowManyRanksHaveComeWithinTheLimit) {
  options.rank_start_limit = absl::ZeroDuration();
  const auto starter = Make();
  EXPECT_EQ(starter->UntilNextTask(), absl::ZeroDuration());
  starter->RunDueTasks();
  EXPECT_EQ(supervisor.reason(), "mpirun started 0 of the 2 ranks of node n1 within 0");
  EXPECT_EQ(starter->UntilNextTask(), absl::InfiniteDuration());
}

TEST_F(MpirunStarterTest, SparesMpirunWhileItsRanksEnd) {
  const auto starter = Make();
  ASSERT_TRUE(starter->Begin().ok());
  EXPECT_TRUE(starter->Spared().empty());
  LineSocket rank = Connect();
  ASSERT_TRUE(rank.Send({{"kind", "rank"}, {"rank", 0}, {"pid", 71}}).ok());
  HandleUntil(*starter, [&] { return ranks->Find(0) != nullptr; });
  starter->BeginStop(absl::Seconds(60));
  const std::set<pid_t> spared = starter->Spared();
  ASSERT_EQ(spared.size(), 1u);
  ::kill(*spared.begin(), SIGKILL);
  supervisor.Stop(absl::OkStatus());
  EXPECT_TRUE(starter->ReapIfOwn(AwaitChild()));
}

TEST_F(MpirunStarterTest, WhatMpirunSaysOfRanksThatAreToldToEndIsNotKept) {
  const std::string stop = (folder.path() / "stop").string();
  const auto starter = Make("echo 'a warning'; until [ -e " + stop + " ]; do sleep 0.01; done\n" +
                            "echo 'mpirun noticed that process rank 1 exited'; exit 143\n");
  ASSERT_TRUE(starter->Begin().ok());
  pollfd printed{starter->output()->read_fd(), POLLIN, 0};
  ASSERT_EQ(::poll(&printed, 1, Soon().RemainingMillis()), 1);
  supervisor.Stop(absl::OkStatus());
  supervisor.is_requested = true;
  starter->BeginStop(absl::Seconds(60));
  ASSERT_TRUE(base::WriteFileAtomic(stop, "").ok());
  EXPECT_TRUE(starter->ReapIfOwn(AwaitChild()));
  EXPECT_EQ(*spool->Mpirun().Read(0, 1 << 20), "a warning\n");
  EXPECT_THAT(starter->output()->tail(), HasSubstr("mpirun noticed"));
}

TEST_F(MpirunStarterTest, OfADaemonThatEndsWithoutAWordTheNodeOfMpirunKnowsWhy) {
  EndDaemonOnSecondNode("exit 1", true);
  EXPECT_EQ(supervisor.reason(),
            "mpirun's daemon ended with exit code 1 and said nothing, as when it loses mpirun on "
            "node n1");
  EXPECT_TRUE(supervisor.told());
  EXPECT_FALSE(supervisor.unlaunched());
}

TEST_F(MpirunStarterTest, ADaemonThatEndsWithoutAWordBeforeItsRanksIsNoFaultOfTheJob) {
  EndDaemonOnSecondNode("exit 1");
  EXPECT_TRUE(supervisor.unlaunched());
  EXPECT_THAT(supervisor.reason(), HasSubstr("as when it loses mpirun on node n1"));
}

TEST_F(MpirunStarterTest, ADaemonThatTellsOfASignalAloneHasSaidNothing) {
  EndDaemonOnSecondNode("echo '(null): Forwarding signal 18 to job' >&2; exit 1", true);
  EXPECT_THAT(supervisor.reason(), HasSubstr("and said nothing"));
  EXPECT_TRUE(supervisor.told());
}

TEST_F(MpirunStarterTest, TellsWhatADaemonSaidWhenItFails) {
  EndDaemonOnSecondNode("echo 'Error: Read-only file system' >&2; exit 213");
  EXPECT_EQ(supervisor.reason(),
            "mpirun's daemon ended with exit code 213: Error: Read-only file system");
  EXPECT_FALSE(supervisor.told());
}

TEST_F(MpirunStarterTest, AnAgentHasTheLauncherOfItsHostRunADaemon) {
  UseTwoNodes();
  std::unique_ptr<GangLink> link;
  const auto starter = MakeBeside(1, link);
  LineSocket agent = Connect();
  ASSERT_TRUE(agent.Send({{"kind", "agent"}, {"host", "n2"}, {"command", "orted x"}}).ok());
  starter->HandleMessages();
  LineSocket& peer = link->peers().at(0);
  const auto asked = peer.Receive(Soon());
  ASSERT_TRUE(asked.ok()) << asked.status();
  EXPECT_EQ((*asked)["run"], "orted x");
  ASSERT_TRUE(peer.Send({{"error", "no such program"}}).ok());
  absl::StatusOr<std::optional<nlohmann::json>> answer = std::nullopt;
  HandleUntil(*starter, [&] { return (answer = agent.Take()).ok() && answer->has_value(); });
  EXPECT_EQ((**answer)["error"], "no such program");
}

TEST_F(MpirunStarterTest, OfAHostWhoseLauncherHasEndedThatIsTheCause) {
  UseTwoNodes();
  std::unique_ptr<GangLink> link;
  const auto starter = MakeBeside(1, link);
  link = nullptr;
  LineSocket stray = Connect();
  ASSERT_TRUE(stray.Send({{"kind", "agent"}, {"host", "n3"}, {"command", "orted x"}}).ok());
  LineSocket agent = Connect();
  ASSERT_TRUE(agent.Send({{"kind", "agent"}, {"host", "n2"}, {"command", "orted x"}}).ok());
  absl::StatusOr<std::optional<nlohmann::json>> answer = std::nullopt;
  HandleUntil(*starter, [&] { return (answer = agent.Take()).ok() && answer->has_value(); });
  EXPECT_EQ((**answer)["error"], "its launcher has ended");
  EXPECT_EQ(supervisor.reason(),
            "lost connection to the launcher of node n2 before the ranks were started");
  HandleUntil(*starter, [&] { return (answer = stray.Take()).ok() && answer->has_value(); });
  EXPECT_EQ((**answer)["error"], "it is no node of this job");
}

}  // namespace
}  // namespace tutti::launch
