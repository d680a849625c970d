// Covers: node_pool.cc, resources.cc, node_timeline.cc, waiting_jobs.cc.
#include <gmock/gmock.h>

#include <map>
#include <random>

#include "absl/strings/str_cat.h"
#include "platform/scheduler/scheduler.h"
#include "platform/scheduler/waiting_jobs.h"

namespace tutti::scheduler {
namespace {
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const absl::Time kNoon =
    absl::FromCivil(absl::CivilSecond(2026, 11, 20, 12, 0, 0), absl::UTCTimeZone());
constexpr int64_t kGiB = int64_t{1} << 30;
constexpr Resources kHas = {.cores = 8, .memory_bytes = 64 * kGiB, .gpus = 4};

std::vector<ClusterNode> NodesWith(int count, Resources has = kHas) {
  std::vector<ClusterNode> nodes;
  nodes.reserve(count);
  for (int i = 0; i < count; ++i) nodes.push_back({absl::StrCat("n", i), has});
  return nodes;
}

PendingJob Asks(std::string id, int64_t sequence, std::optional<Resources> share,
                absl::Duration limit = absl::InfiniteDuration(), int nodes = 1) {
  return {.id = std::move(id),
          .sequence = sequence,
          .node_count = nodes,
          .time_limit = limit,
          .share = share};
}

std::vector<std::string> Given(const std::vector<Start>& starts) {
  std::vector<std::string> given;
  for (const Start& start : starts) {
    given.push_back(start.job_id);
    for (const std::string& node : start.nodes) absl::StrAppend(&given.back(), " ", node);
  }
  return given;
}

TEST(Shares, SeveralShareANodeUntilItIsFull) {
  const Decision decision =
      Schedule({Asks("a", 1, Resources{3}), Asks("b", 2, Resources{4}), Asks("c", 3, Resources{2})},
               {}, NodesWith(1), kNoon);
  EXPECT_THAT(Given(decision.starts), ElementsAre("a n0", "b n0"));
  EXPECT_EQ(decision.waits.at(0).reason,
            "waits for 2 cores of 1 node: 0 of 1 have them free; jobs without a time limit have "
            "the rest");
}

TEST(Shares, APartThatSaysNoMemoryGetsThatOfItsCores) {
  const auto beside = [](int64_t memory_bytes) {
    return Schedule({Asks("a", 1, Resources{3}), Asks("b", 2, Resources{1, memory_bytes})}, {},
                    NodesWith(1), kNoon)
        .starts;
  };
  EXPECT_THAT(Given(beside(40 * kGiB)), ElementsAre("a n0", "b n0"));
  EXPECT_THAT(Given(beside(41 * kGiB)), ElementsAre("a n0"));
  EXPECT_THAT(beside(kGiB).at(0).shares, ElementsAre(Resources{3, 24 * kGiB}));
}

TEST(Shares, GpusAreGivenOnce) {
  const Decision decision =
      Schedule({Asks("a", 1, Resources{1, kGiB, 3}), Asks("b", 2, Resources{1, kGiB, 2})}, {},
               NodesWith(2), kNoon);
  EXPECT_THAT(Given(decision.starts), ElementsAre("a n0", "b n1"));
}

TEST(Shares, GoToTheNodeThatFitsBestOfThoseThatAreShared) {
  const std::vector<RunningJob> running = {{.id = "r", .nodes = {"n1"}, .shares = {{2, kGiB}}},
                                           {.id = "s", .nodes = {"n2"}, .shares = {{5, kGiB}}}};
  const Decision decision =
      Schedule({Asks("a", 1, Resources{3}), Asks("b", 2, Resources{3}), Asks("c", 3, std::nullopt)},
               running, NodesWith(3), kNoon);
  EXPECT_THAT(Given(decision.starts), ElementsAre("a n2", "b n1", "c n0"));
}

TEST(Shares, OnlyWhatNeedsGpusIsPutBesideThem) {
  std::vector<ClusterNode> nodes = NodesWith(1);
  nodes.push_back({"n1", {8, 64 * kGiB, 0}});
  const Decision decision =
      Schedule({Asks("a", 1, Resources{2}), Asks("b", 2, Resources{2, 0, 1})}, {}, nodes, kNoon);
  EXPECT_THAT(Given(decision.starts), ElementsAre("a n1", "b n0"));
}

TEST(Shares, AGangHasItsPartOnAsManyNodes) {
  const Decision decision =
      Schedule({Asks("a", 1, Resources{8}), Asks("b", 2, Resources{2}, absl::InfiniteDuration(), 2),
                Asks("c", 3, Resources{2}, absl::InfiniteDuration(), 3)},
               {}, NodesWith(3), kNoon);
  EXPECT_THAT(Given(decision.starts), ElementsAre("a n0", "b n1 n2"));
}

TEST(Shares, AWholeNodeIsOneThatNobodyHasAPartOf) {
  const std::vector<RunningJob> running = {{"r", {"n0"}, kNoon + absl::Minutes(40), {{1, kGiB}}}};
  const Decision decision = Schedule({Asks("a", 1, std::nullopt)}, running, NodesWith(1), kNoon);
  EXPECT_THAT(decision.starts, IsEmpty());
  EXPECT_EQ(decision.waits.at(0).reason,
            "waits for 1 node: 0 of 1 are free; by 12:40 UTC there is room");
  EXPECT_EQ(decision.waits.at(0).expected_start, kNoon + absl::Minutes(40));
}

TEST(Shares, DoNotDelayAHeadThatWaitsForAWholeNode) {
  const std::vector<RunningJob> running = {{"r", {"n0"}, kNoon + absl::Minutes(40), {{1, kGiB}}}};
  const Decision decision = Schedule(
      {Asks("head", 1, std::nullopt), Asks("long", 2, Resources{1}, absl::Minutes(41)),
       Asks("endless", 3, Resources{1}), Asks("short", 4, Resources{1}, absl::Minutes(40))},
      running, NodesWith(1), kNoon);
  EXPECT_THAT(Given(decision.starts), ElementsAre("short n0"));
  EXPECT_THAT(decision.waits.at(1).reason, HasSubstr("would delay job head"));
}

TEST(Shares, GoBesideWhatTheHeadLeavesOfItsNode) {
  const std::vector<RunningJob> running = {{"r", {"n0"}, kNoon + absl::Minutes(40), {{6, kGiB}}}};
  const Decision decision = Schedule(
      {Asks("head", 1, Resources{7, kGiB}), Asks("a", 2, Resources{1}), Asks("b", 3, Resources{1})},
      running, NodesWith(1), kNoon);
  EXPECT_THAT(Given(decision.starts), ElementsAre("a n0"));
}

// Where nobody knows when the head may start, one node is left to empty for it.
TEST(Shares, WithoutATimeLimitDoNotKeepANodeFromAHeadForEver) {
  const std::vector<RunningJob> running = {{.id = "r", .nodes = {"n0"}, .shares = {{1, kGiB}}},
                                           {.id = "s", .nodes = {"n1"}, .shares = {{3, kGiB}}}};
  const Decision decision = Schedule(
      {Asks("head", 1, std::nullopt), Asks("a", 2, Resources{2}), Asks("b", 3, Resources{6})},
      running, NodesWith(2), kNoon);
  EXPECT_THAT(Given(decision.starts), ElementsAre("a n1"));
}

TEST(Shares, WhatNoNodeHasSaysWhichKeyToLower) {
  const auto why = [](Resources share, int nodes = 1) {
    return Schedule({Asks("a", 1, share, absl::InfiniteDuration(), nodes)}, {}, NodesWith(2), kNoon)
        .waits.at(0)
        .reason;
  };
  EXPECT_EQ(why({9}),
            "needs 9 cores of a node, but no node has more than 8: lower "
            "resources.properties.tutti.cpus");
  EXPECT_EQ(why({1, 65 * kGiB}),
            "needs 65.0 GiB of a node, but no node has more than 64.0 GiB: lower "
            "resources.properties.tutti.memory");
  EXPECT_EQ(why({1, 0, 5}),
            "needs 5 GPUs of a node, but no node has more than 4: lower "
            "resources.properties.tutti.gpus");
  EXPECT_EQ(why({2}, 3),
            "needs 3 nodes with 2 cores, but the cluster has only 2: lower "
            "resources.instance_count or add nodes");
}

// Jobs of all kinds and what runs, drawn from one seed.
class SharedWorld {
 public:
  explicit SharedWorld(unsigned seed) : random_(seed) {
    for (int i = Upto(5); i >= 0; --i) {
      nodes.push_back({absl::StrCat("n", i), {1 + Upto(7), (1 + Upto(15)) * kGiB, Upto(4)}});
    }
    for (int i = Upto(20); i > 0; --i) {
      pending.push_back(Asks(absl::StrCat("j", i), i, Share(), Limit(), 1 + Upto(3) * Upto(1)));
      pending.back().priority = static_cast<spec::Priority>(Upto(2));
    }
  }

  int Upto(int most) { return static_cast<int>(random_() % (most + 1)); }
  std::optional<Resources> Share() {
    if (Upto(3) == 0) return std::nullopt;
    return Resources{1 + Upto(5), int64_t{Upto(2)} * Upto(3) * kGiB, Upto(3) * Upto(1)};
  }
  absl::Duration Limit() { return absl::Minutes(1 + Upto(8) * 10); }

  // As a service does with a start.
  void Begin(const Start& start, absl::Time now) {
    const auto job = std::find_if(pending.begin(), pending.end(),
                                  [&](const PendingJob& p) { return p.id == start.job_id; });
    running.push_back({job->id, start.nodes, now + job->time_limit, start.shares});
    pending.erase(job);
  }
  void CheckNobodyHasTooMuch() const {
    std::map<std::string, Resources> used;
    std::map<std::string, int> holders, whole;
    for (const RunningJob& job : running) {
      for (size_t i = 0; i < job.nodes.size(); ++i) {
        ++holders[job.nodes[i]];
        whole[job.nodes[i]] += job.shares.empty() ? 1 : 0;
        if (!job.shares.empty()) used[job.nodes[i]] += job.shares[i];
      }
    }
    for (const ClusterNode& node : nodes) {
      EXPECT_TRUE(Fits(used[node.name], node.has)) << node.name;
      EXPECT_TRUE(whole[node.name] == 0 || holders[node.name] == 1) << node.name;
    }
  }

  std::vector<PendingJob> pending;
  std::vector<RunningJob> running;
  std::vector<ClusterNode> nodes;

 private:
  std::minstd_rand random_;
};

// The world goes on until it is empty, with jobs that use their whole limit and more that come.
TEST(Shares, OfANodeNeverMoreThanItHasAndNoHeadIsDelayed) {
  int starts = 0;
  for (unsigned seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(seed);
    SharedWorld world(seed);
    absl::Time now = kNoon;
    std::map<std::string, absl::Time> promised;
    for (int step = 0; step < 200; ++step) {
      WaitingJobs waiting;
      for (const PendingJob& job : world.pending) waiting.Add(job);
      const Decision decision = Schedule(world.pending, world.running, world.nodes, now);
      ASSERT_EQ(Given(StartsOf(waiting, world.running, world.nodes, now)), Given(decision.starts));
      for (const Start& start : decision.starts) {
        const auto promise = promised.emplace(start.job_id, now).first;
        ASSERT_LE(now, promise->second) << start.job_id;
        world.Begin(start, now);
        ++starts;
      }
      world.CheckNobodyHasTooMuch();
      for (const Wait& wait : decision.waits) {
        if (!wait.expected_start) continue;
        promised.emplace(wait.job_id, *wait.expected_start);  // of the head
        break;
      }
      if (HasFailure() || world.running.empty()) break;
      now = world.running[0].expected_end;
      for (const RunningJob& job : world.running) now = std::min(now, job.expected_end);
      std::erase_if(world.running, [&](const RunningJob& job) { return job.expected_end <= now; });
      if (step < 20) {
        world.pending.push_back(
            Asks(absl::StrCat("late", step), 1000 + step, world.Share(), world.Limit()));
        world.pending.back().priority = spec::Priority::kLow;
      }
    }
    for (const Wait& wait : Schedule(world.pending, {}, world.nodes, now).waits) {
      ASSERT_THAT(wait.reason, ::testing::StartsWith("needs")) << wait.job_id;
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(starts, 4000);
}

}  // namespace
}  // namespace tutti::scheduler
