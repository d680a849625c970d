// Ranks on nodes of their own, between which packets are really dropped, in the middle of every
// kind of collective. Skipped where network namespaces cannot be made (they need root).
// Covers: group/join_running.cc, rendezvous/membership/generation.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "base/test_patience.h"
#include "runtime/comm/forked_ranks.h"
#include "runtime/comm/group/group_test_support.h"
#include "runtime/comm/node_namespaces.h"

namespace tutti::comm {
namespace {

enum class LinkFate { kCut, kStopped, kKilled };
enum class CutWork { kLargeAllReduce, kSmallAllReduce, kAllGather, kBroadcast };

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

absl::Status Do(Communicator& group, CutWork work, base::Deadline deadline) {
  static std::vector<float> data(1 << 20), all(data.size() * 4);
  switch (work) {
    case CutWork::kLargeAllReduce:
      return group.AllReduce(data.data(), data.size(), DataType::kFloat32, ReduceOp::kMax,
                             deadline);
    case CutWork::kSmallAllReduce:
      return group.AllReduce(data.data(), 2, DataType::kFloat32, ReduceOp::kMax, deadline);
    case CutWork::kAllGather:
      return group.AllGather(data.data(), data.size(), all.data(), deadline);
    case CutWork::kBroadcast:
      return group.Broadcast(data.data(), data.size() * 4, 0, deadline);
  }
  return absl::OkStatus();
}

class NetworkFaultTest : public testing::Test {
 protected:
  static constexpr int kNodes = 4;
  static void SetUpTestSuite() { nodes_ = new NodeNamespaces(kNodes); }
  static void TearDownTestSuite() {
    delete nodes_;
    nodes_ = nullptr;
  }
  void SetUp() override {
    if (!nodes_->good()) GTEST_SKIP() << "network namespaces need root and ip(8)";
    ASSERT_EQ(::pipe(ready_), 0);
  }
  void TearDown() override {
    if (!nodes_->good()) return;
    for (const int end : ready_) ::close(end);
    for (int node = 0; node < kNodes; ++node) nodes_->Restore(node);
  }

  std::vector<GroupOptions> Options(int size, int nodes, absl::Duration peer_timeout) {
    static int port = 7100;
    ++port;
    std::vector<GroupOptions> all(size);
    for (int rank = 0; rank < size; ++rank) {
      GroupOptions& one = all[rank];
      one.rank = rank;
      one.size = size;
      one.node = rank * nodes / size;
      one.address = nodes_->Address(one.node);
      one.master_address = nodes_->Address(0);
      one.master_port = port;
      one.token = "a token";
      one.peer_timeout = peer_timeout;
    }
    return all;
  }

  // Starts a rank on its node, which says that it is ready after some rounds of `work` and goes on
  // with it until the group ends; `then` is what it does with that.
  void Start(const GroupOptions& options, CutWork work, absl::Duration deadline,
             const std::function<std::string(std::unique_ptr<Communicator>, absl::Status)>& then) {
    ranks_.Start([=, this]() -> std::string {
      if (!nodes_->Enter(options.node)) return "no node";
      auto group = JoinGroup(options);
      if (!group.ok()) return group.status().ToString();
      absl::Status status;
      for (int round = 0; status.ok(); ++round) {
        if (round == 3 && ::write(ready_[1], "r", 1) != 1) return "no test";
        status = Do(**group, work, base::Deadline::After(deadline));
      }
      return then(*std::move(group), status);
    });
  }
  void AwaitReady(int count) {
    char byte;
    pollfd polled = {ready_[0], POLLIN, 0};
    for (int i = 0; i < count; ++i) {
      ASSERT_EQ(::poll(&polled, 1, static_cast<int>(30000 * base::TestPatience())), 1);
      ASSERT_EQ(::read(ready_[0], &byte, 1), 1);
    }
  }
  // All have ended that could say it.
  void ForgetReady() {
    char bytes[4096];
    pollfd polled = {ready_[0], POLLIN, 0};
    while (::poll(&polled, 1, 0) == 1 && ::read(ready_[0], bytes, sizeof(bytes)) > 0) {
    }
  }

  static NodeNamespaces* nodes_;
  int ready_[2] = {-1, -1};
  ForkedRanks ranks_;
};

NodeNamespaces* NetworkFaultTest::nodes_ = nullptr;

struct CutScenario {
  int size, nodes;
  LinkFate fate;
  int victim;
  CutWork work;
  double within = 3;
  absl::Duration peer_timeout = base::PatientTimeout(absl::Seconds(1));
  absl::Duration deadline = base::Patient(absl::Seconds(20));
};

class LossInTheNetworkTest : public NetworkFaultTest,
                             public testing::WithParamInterface<CutScenario> {
 protected:
  void Strike(const CutScenario& scenario, int node) {
    if (scenario.fate == LinkFate::kCut) {
      ASSERT_TRUE(nodes_->Cut(node));
    }
    if (scenario.fate == LinkFate::kStopped) ranks_.Signal(scenario.victim, SIGSTOP);
    if (scenario.fate == LinkFate::kKilled) ranks_.Signal(scenario.victim, SIGKILL);
  }
};

TEST_P(LossInTheNetworkTest, IsAnErrorOnAllOthersInTimeThatNamesTheRank) {
  const CutScenario scenario = GetParam();
  const auto options = Options(scenario.size, scenario.nodes, scenario.peer_timeout);
  for (const GroupOptions& one : options) {
    Start(one, scenario.work, scenario.deadline,
          [](std::unique_ptr<Communicator>, absl::Status status) {
            return absl::StrCat(LostRank(status).value_or(-1), " ", Now(), " ",
                                std::string(status.message()));
          });
  }
  AwaitReady(scenario.size);
  const int node = options[scenario.victim].node;
  const double struck = Now();
  Strike(scenario, node);
  for (const GroupOptions& one : options) {
    const bool cut_off = scenario.fate == LinkFate::kCut && one.node == node;
    if (scenario.fate != LinkFate::kCut && one.rank == scenario.victim) continue;
    const std::string report = ranks_.Report(one.rank);
    std::istringstream fields(report);
    int lost = -2;
    double when = 0;
    fields >> lost >> when;
    EXPECT_LT(when - struck, scenario.within * base::TestPatience())
        << "rank " << one.rank << ": " << report;
    ASSERT_GE(lost, 0) << "rank " << one.rank << ": " << report;
    if (scenario.fate == LinkFate::kCut) {
      EXPECT_EQ(options[lost].node != node, cut_off) << "rank " << one.rank << ": " << report;
    } else {
      EXPECT_EQ(lost, scenario.victim) << "rank " << one.rank << ": " << report;
    }
  }
}

std::vector<CutScenario> Scenarios() {
  std::vector<CutScenario> all;
  const std::pair<int, int> layouts[] = {{2, 2}, {3, 3}, {3, 2}, {4, 2}, {4, 4}};
  for (const LinkFate fate : {LinkFate::kCut, LinkFate::kStopped, LinkFate::kKilled}) {
    for (const auto& [size, nodes] : layouts) {
      const int number = static_cast<int>(all.size());
      const int victim = number % 2 == 0 ? size - 1 : 0;
      all.push_back({size, nodes, fate, victim, static_cast<CutWork>(number % 4)});
    }
  }
  // The caller's deadline is sooner than the silence.
  for (const LinkFate fate : {LinkFate::kCut, LinkFate::kStopped}) {
    const absl::Duration silence = base::PatientTimeout(absl::Seconds(4));
    const absl::Duration sooner = base::PatientTimeout(absl::Seconds(1));
    all.push_back({3, 3, fate, 1, CutWork::kLargeAllReduce, 3, silence, sooner});
    all.push_back({3, 3, fate, 2, CutWork::kSmallAllReduce, 3, silence, sooner});
  }
  return all;
}

std::string CutScenarioName(const testing::TestParamInfo<CutScenario>& info) {
  const CutScenario& s = info.param;
  const char* const fates[] = {"Cut", "Stopped", "Killed"};
  const char* const works[] = {"LargeAllReduce", "SmallAllReduce", "AllGather", "Broadcast"};
  return absl::StrCat(fates[static_cast<int>(s.fate)], "Rank", s.victim, "Of", s.size, "On",
                      s.nodes, "NodesIn", works[static_cast<int>(s.work)], "Case", info.index);
}

INSTANTIATE_TEST_SUITE_P(, LossInTheNetworkTest, testing::ValuesIn(Scenarios()), CutScenarioName);

// ---- Those that are not lost ----

TEST_F(NetworkFaultTest, ARankThatComputesForLongerThanTheTimeoutIsNotLost) {
  const absl::Duration silence = base::PatientTimeout(absl::Milliseconds(600));
  const double computes = 3 * absl::ToDoubleSeconds(silence);
  for (const GroupOptions& one : Options(3, 3, silence)) {
    ranks_.Start([this, one, computes]() -> std::string {
      if (!nodes_->Enter(one.node)) return "no node";
      auto group = JoinGroup(one);
      if (!group.ok()) return group.status().ToString();
      volatile double sink = 0;
      for (const double start = Now(); one.rank == 1 && Now() - start < computes;) sink = sink + 1;
      return Do(**group, CutWork::kLargeAllReduce, Soon()).ToString();
    });
  }
  for (const int rank : {0, 1, 2}) EXPECT_EQ(ranks_.Report(rank), "OK");
}

TEST_F(NetworkFaultTest, APauseOrACutLinkThatIsShorterThanTheTimeoutIsNoLoss) {
  for (const bool cut : {false, true}) {
    ForkedRanks ranks;
    for (const GroupOptions& one : Options(3, 3, base::PatientTimeout(absl::Seconds(3)))) {
      ranks.Start([this, one]() -> std::string {
        if (!nodes_->Enter(one.node)) return "no node";
        auto group = JoinGroup(one);
        if (!group.ok()) return group.status().ToString();
        // The end is rank 0's to say: the ranks' clocks start at different times.
        for (const double start = Now();;) {
          absl::Status status = Do(**group, CutWork::kLargeAllReduce, Soon());
          int32_t on = Now() - start < 3;
          if (status.ok()) status = (*group)->Broadcast(&on, sizeof(on), 0, Soon());
          if (!status.ok() || on == 0) return status.ToString();
          if (::write(ready_[1], "r", 1) != 1) return "no test";
        }
      });
    }
    AwaitReady(9);
    cut ? static_cast<void>(nodes_->Cut(1)) : ranks.Signal(1, SIGSTOP);
    ::poll(nullptr, 0, 1000);  // the pause itself
    cut ? static_cast<void>(nodes_->Restore(1)) : ranks.Signal(1, SIGCONT);
    for (const int rank : {0, 1, 2}) EXPECT_EQ(ranks.Report(rank), "OK") << "cut " << cut;
    ForgetReady();
  }
}

// ---- Re-forming ----

TEST_F(NetworkFaultTest, OfAGroupThatIsCutInTwoOneHalfGoesOnAndTheOtherKnowsThatItMustNot) {
  auto options = Options(4, 2, base::PatientTimeout(absl::Seconds(1)));
  const absl::Duration gather = base::PatientTimeout(absl::Seconds(5));
  for (GroupOptions& one : options) {
    one.elastic = true;
    Start(one, CutWork::kLargeAllReduce, base::Patient(absl::Seconds(20)),
          [gather](std::unique_ptr<Communicator> group, absl::Status) -> std::string {
            auto next = group->Reform({.member_timeout = gather});
            if (!next.ok()) return std::string(next.status().message());
            const absl::Status works = Do(**next, CutWork::kLargeAllReduce, Soon());
            return absl::StrCat("rank ", (*next)->rank(), " of ", (*next)->size(), " ",
                                works.ToString());
          });
  }
  AwaitReady(4);
  ASSERT_TRUE(nodes_->Cut(1));
  EXPECT_EQ(ranks_.Report(0), "rank 0 of 2 OK");
  EXPECT_EQ(ranks_.Report(1), "rank 1 of 2 OK");
  // One of these two gives up first, and may be missing to the other, too.
  for (const int rank : {2, 3}) {
    const std::string report = ranks_.Report(rank);
    EXPECT_THAT(report, testing::StartsWith("the group cannot go on: ranks 0, 1"));
    EXPECT_THAT(report, testing::HasSubstr(absl::StrCat(" of 4 did not come within ",
                                                        absl::FormatDuration(gather),
                                                        " and could have gone on elsewhere")));
  }
}

TEST_F(NetworkFaultTest, ARankWhoseLinkIsMendedLearnsThatTheOthersHaveGoneOn) {
  auto options = Options(3, 3, base::PatientTimeout(absl::Seconds(1)));
  for (GroupOptions& one : options) {
    one.elastic = true;
    Start(one, CutWork::kSmallAllReduce, base::Patient(absl::Seconds(20)),
          [this, one](std::unique_ptr<Communicator> group, absl::Status) -> std::string {
            auto next = group->Reform({.member_timeout = base::Patient(absl::Seconds(30))});
            if (!next.ok()) return std::string(next.status().message());
            if (::write(ready_[1], "f", 1) != 1) return "no test";
            // Goes on until the third is back as a newcomer.
            while ((*next)->size() < 3) {
              int waiting = (*next)->WaitingNewcomers();
              const absl::Status told = (*next)->Broadcast(&waiting, sizeof(waiting), 0, Soon());
              if (!told.ok()) return told.ToString();
              if (waiting == 0) continue;
              auto grown = (*next)->Reform();
              if (!grown.ok()) return grown.status().ToString();
              next = std::move(grown);
            }
            return Do(**next, CutWork::kLargeAllReduce, Soon()).ToString();
          });
  }
  AwaitReady(3);
  ASSERT_TRUE(nodes_->Cut(2));
  AwaitReady(2);  // the others have re-formed
  ASSERT_TRUE(nodes_->Restore(2));
  const std::string refused = ranks_.Report(2);
  EXPECT_NE(refused.find("the group has gone on without this rank, as generation 1 of 2 rank(s)"),
            std::string::npos)
      << refused;
  ranks_.Start([this, one = options[2]]() -> std::string {
    if (!nodes_->Enter(2)) return "no node";
    auto group = JoinRunning(one, Soon());
    if (!group.ok()) return group.status().ToString();
    return Do(**group, CutWork::kLargeAllReduce, Soon()).ToString();
  });
  for (const int process : {0, 1, 3}) EXPECT_EQ(ranks_.Report(process), "OK");
}

}  // namespace
}  // namespace tutti::comm
