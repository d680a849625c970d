// Covers: node_pool.cc.
#include "platform/scheduler/scheduler.h"

#include <gmock/gmock.h>

#include <map>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"

namespace tutti::scheduler {
namespace {
using spec::Priority;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const absl::Time kNow =
    absl::FromCivil(absl::CivilSecond(2026, 11, 20, 12, 0, 0), absl::UTCTimeZone());
std::vector<ClusterNode> Nodes(const std::vector<std::string>& names, Resources has = {1}) {
  std::vector<ClusterNode> nodes;
  for (const std::string& name : names) nodes.push_back({name, has});
  return nodes;
}

const std::vector<std::string> kBoth = {"n0", "n1"};
const std::vector<ClusterNode> kTwo = Nodes({"n0", "n1"});
const std::vector<ClusterNode> kFour = Nodes({"n0", "n1", "n2", "n3"});

PendingJob Job(std::string id, int64_t sequence, int nodes,
               absl::Duration limit = absl::InfiniteDuration(),
               Priority priority = Priority::kNormal) {
  return {std::move(id), priority, sequence, nodes, limit};
}

std::vector<std::string> Started(const Decision& decision) {
  std::vector<std::string> ids;
  for (const Start& start : decision.starts) ids.push_back(start.job_id);
  return ids;
}

std::vector<std::string> Reasons(const Decision& decision) {
  std::vector<std::string> reasons;
  for (const Wait& wait : decision.waits) {
    reasons.push_back(absl::StrCat(wait.job_id, " ", wait.reason));
  }
  return reasons;
}

TEST(Scheduler, StartsAGangOnWholeNodesInTheirOrder) {
  const Decision decision = Schedule({Job("a", 1, 2)}, {}, kFour, kNow);
  ASSERT_EQ(decision.starts.size(), 1u);
  EXPECT_THAT(decision.starts[0].nodes, ElementsAre("n0", "n1"));
  EXPECT_THAT(decision.waits, IsEmpty());
}

TEST(Scheduler, NodesToAvoidAreTakenLast) {
  PendingJob job = Job("a", 1, 2);
  job.avoid = {"n0", "n2"};
  EXPECT_THAT(Schedule({job}, {}, kFour, kNow).starts.at(0).nodes, ElementsAre("n1", "n3"));
  job.node_count = 3;
  EXPECT_THAT(Schedule({job}, {}, kFour, kNow).starts.at(0).nodes, ElementsAre("n1", "n3", "n0"));
  const Decision two = Schedule({job, Job("b", 2, 1)}, {}, kFour, kNow);
  EXPECT_THAT(two.starts.at(1).nodes, ElementsAre("n2"));
}

TEST(Scheduler, APriorityGoesFirstAndWithinOneFirstComeFirstServed) {
  const Decision decision =
      Schedule({Job("late", 3, 1), Job("low", 1, 1, absl::InfiniteDuration(), Priority::kLow),
                Job("early", 2, 1), Job("high", 4, 1, absl::InfiniteDuration(), Priority::kHigh)},
               {}, kFour, kNow);
  EXPECT_THAT(Started(decision), ElementsAre("high", "early", "late", "low"));
}

TEST(Scheduler, TheHeadOfTheQueueSaysWhatItWaitsFor) {
  const Decision decision =
      Schedule({Job("a", 1, 2)}, {{"x", {"n0"}, kNow + absl::Minutes(40)}}, kTwo, kNow);
  EXPECT_THAT(decision.starts, IsEmpty());
  EXPECT_THAT(Reasons(decision),
              ElementsAre("a waits for 2 nodes: 1 of 2 is free; job x runs until at most 12:40 "
                          "UTC"));
  EXPECT_EQ(decision.waits[0].expected_start, kNow + absl::Minutes(40));
}

TEST(Scheduler, AJobWithoutATimeLimitGivesNoExpectedStart) {
  const Decision decision = Schedule({Job("a", 1, 2)}, {{"x", {"n0"}}}, kTwo, kNow);
  EXPECT_THAT(Reasons(decision),
              ElementsAre("a waits for 2 nodes: 1 of 2 is free; job x has no time limit"));
  EXPECT_EQ(decision.waits[0].expected_start, std::nullopt);
  EXPECT_FALSE(decision.waits[0].starts_by_then);
}

TEST(Scheduler, NamesAllThatMustEndFirst) {
  const Decision decision = Schedule(
      {Job("a", 1, 2)},
      {{"x", {"n0"}, kNow + absl::Hours(20)}, {"y", {"n1"}, kNow + absl::Hours(1)}}, kTwo, kNow);
  EXPECT_THAT(Reasons(decision), ElementsAre("a waits for 2 nodes: 0 of 2 are free; jobs y and x "
                                             "run until at most 2026-11-21 08:00 UTC"));
}

TEST(Scheduler, AJobPastItsLimitStillHoldsItsNodes) {
  const Decision decision =
      Schedule({Job("a", 1, 2)}, {{"x", {"n0"}, kNow - absl::Minutes(1)}}, kTwo, kNow);
  EXPECT_THAT(decision.starts, IsEmpty());
  EXPECT_THAT(Reasons(decision),
              ElementsAre("a waits for 2 nodes: 1 of 2 is free; job x is about to end"));
}

TEST(Scheduler, CountsTheJobsAhead) {
  const Decision decision = Schedule({Job("a", 1, 1), Job("b", 2, 1), Job("c", 3, 1)},
                                     {{"x", kBoth, kNow + absl::Minutes(40)}}, kTwo, kNow);
  EXPECT_THAT(Reasons(decision),
              ElementsAre("a waits for 1 node: 0 of 2 are free; job x runs until at most 12:40 UTC",
                          "b waits for 1 node: 0 of 2 are free; 1 job is ahead",
                          "c waits for 1 node: 0 of 2 are free; 2 jobs are ahead"));
  EXPECT_EQ(decision.waits[1].expected_start, kNow + absl::Minutes(40));
  EXPECT_EQ(decision.waits[2].expected_start, std::nullopt);  // a and b have no time limit
}

TEST(Scheduler, AJobLargerThanTheClusterSaysSoAndHoldsUpNobody) {
  const Decision decision = Schedule({Job("huge", 1, 5), Job("b", 2, 4)}, {}, kFour, kNow);
  EXPECT_THAT(Started(decision), ElementsAre("b"));
  EXPECT_THAT(Reasons(decision),
              ElementsAre("huge needs 5 nodes, but the cluster has only 4: lower "
                          "resources.instance_count or add nodes"));
  EXPECT_THAT(Reasons(Schedule({Job("a", 1, 1)}, {}, {}, kNow)),
              ElementsAre("a the cluster has no nodes"));
}

TEST(Scheduler, AJobThatNeedsCordonedNodesWaitsForThemAndHoldsUpNobody) {
  const Decision decision = Schedule({Job("a", 1, 2), Job("b", 2, 1)}, {}, Nodes({"n0"}), kNow, 1);
  EXPECT_THAT(Started(decision), ElementsAre("b"));
  EXPECT_THAT(Reasons(decision),
              ElementsAre("a waits for 2 nodes: 1 of 2 is cordoned (tutti node list says why)"));
}

TEST(Scheduler, AShortJobGoesFirstWhereItDelaysNobody) {
  const std::vector<RunningJob> running = {{"x", {"n0"}, kNow + absl::Minutes(40)}};
  const Decision decision =
      Schedule({Job("head", 1, 2, absl::Hours(1)), Job("long", 2, 1, absl::Minutes(41)),
                Job("short", 3, 1, absl::Minutes(40))},
               running, kTwo, kNow);
  EXPECT_THAT(Started(decision), ElementsAre("short"));
  EXPECT_EQ(decision.waits[0].expected_start, kNow + absl::Minutes(40));
  EXPECT_TRUE(decision.waits[0].starts_by_then);
  EXPECT_EQ(decision.waits[1].job_id, "long");
  EXPECT_EQ(decision.waits[1].expected_start, kNow + absl::Minutes(100));
  EXPECT_FALSE(decision.waits[1].starts_by_then) << "one behind it may delay it";
}

TEST(Scheduler, AJobThatWouldDelayTheHeadSaysSo) {
  const std::vector<RunningJob> running = {{"x", {"n0"}, kNow + absl::Minutes(40)}};
  const Decision decision =
      Schedule({Job("head", 1, 2), Job("endless", 2, 1)}, running, kTwo, kNow);
  EXPECT_THAT(decision.starts, IsEmpty());
  EXPECT_EQ(Reasons(decision)[1],
            "endless waits for 1 node: 1 of 2 is free, but to start now would delay job head, "
            "which is to start by 12:40 UTC; with a short limits.timeout it could go first");
}

TEST(Scheduler, AnEndlessJobUsesANodeThatTheHeadDoesNotNeed) {
  const std::vector<RunningJob> running = {{"x", {"n0", "n1"}, kNow + absl::Minutes(40)}};
  EXPECT_THAT(
      Started(Schedule({Job("head", 1, 3), Job("b", 2, 1), Job("c", 3, 1)}, running, kFour, kNow)),
      ElementsAre("b"));
  // Likewise where nobody knows when the head starts.
  EXPECT_THAT(Started(Schedule({Job("head", 1, 3), Job("b", 2, 1), Job("c", 3, 1)},
                               {{"x", {"n0", "n1"}}}, kFour, kNow)),
              ElementsAre("b"));
}

TEST(Scheduler, NodesThatLeftTheClusterCountForNothing) {
  const Decision decision = Schedule({Job("a", 1, 2)}, {{"x", {"gone", "n0"}}}, kTwo, kNow);
  EXPECT_THAT(decision.starts, IsEmpty());
  EXPECT_THAT(Started(Schedule({Job("a", 1, 2)}, {{"x", {"gone"}}}, kTwo, kNow)), ElementsAre("a"));
}

// A queue, a cluster and what runs on it, all drawn from one seed.
struct World {
  std::vector<PendingJob> pending;
  std::vector<RunningJob> running;
  std::vector<std::string> nodes;

  explicit World(int seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    const auto pick = [&](int least, int most) {
      return std::uniform_int_distribution<int>(least, most)(random);
    };
    const auto minutes = [&] {
      return pick(0, 4) == 0 ? absl::InfiniteDuration() : absl::Minutes(pick(1, 90));
    };
    const int node_count = pick(1, 12);
    for (int i = 0; i < node_count; ++i) nodes.push_back(absl::StrCat("n", i));
    for (int i = 0, used = 0; i < 4; ++i) {
      RunningJob job{absl::StrCat("r", i), {}, kNow + minutes()};
      for (int n = pick(0, 3); n > 0 && used < node_count; --n) job.nodes.push_back(nodes[used++]);
      if (!job.nodes.empty()) running.push_back(std::move(job));
    }
    const int jobs = pick(0, 15);
    for (int i = 0; i < jobs; ++i) {
      pending.push_back(
          Job(absl::StrCat("p", i), i, pick(1, 14), minutes(), static_cast<Priority>(pick(0, 2))));
    }
    std::shuffle(pending.begin(), pending.end(), random);
  }

  Decision Decide() const { return Schedule(pending, running, Nodes(nodes), kNow); }
  const PendingJob& Pending(const std::string& id) const {
    return *std::find_if(pending.begin(), pending.end(),
                         [&](const PendingJob& job) { return job.id == id; });
  }
  size_t FreeNodes() const {
    size_t used = 0;
    for (const RunningJob& job : running) used += job.nodes.size();
    return nodes.size() - used;
  }
  bool ComesFirst(const PendingJob& a, const PendingJob& b) const {
    return a.priority != b.priority ? a.priority > b.priority : a.sequence < b.sequence;
  }
  bool Fits(const PendingJob& job) const {
    return static_cast<size_t>(job.node_count) <= nodes.size();
  }
};

class RandomQueues : public ::testing::TestWithParam<int> {
 protected:
  // Each parameter stands for a block of seeds, so that a failure names a small one.
  template <typename Body>
  void ForEachWorld(const Body& body) {
    for (int seed = GetParam() * 500; seed < (GetParam() + 1) * 500; ++seed) {
      SCOPED_TRACE(absl::StrCat("seed ", seed));
      const World world(seed);
      body(world, world.Decide());
      if (HasFailure()) return;
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Seeds, RandomQueues, ::testing::Range(0, 6));

TEST_P(RandomQueues, EveryJobEitherStartsOrWaitsWithAReason) {
  ForEachWorld([](const World& world, const Decision& decision) {
    std::set<std::string> seen;
    for (const Start& start : decision.starts) EXPECT_TRUE(seen.insert(start.job_id).second);
    for (const Wait& wait : decision.waits) {
      EXPECT_TRUE(seen.insert(wait.job_id).second);
      EXPECT_FALSE(wait.reason.empty());
      EXPECT_GT(wait.expected_start.value_or(absl::InfiniteFuture()), kNow) << wait.reason;
    }
    EXPECT_EQ(seen.size(), world.pending.size());
  });
}

TEST_P(RandomQueues, GangsGetAllTheirNodesAndNoNodeIsGivenTwice) {
  ForEachWorld([](const World& world, const Decision& decision) {
    std::set<std::string> used;
    for (const RunningJob& job : world.running) used.insert(job.nodes.begin(), job.nodes.end());
    for (const Start& start : decision.starts) {
      EXPECT_EQ(start.nodes.size(), static_cast<size_t>(world.Pending(start.job_id).node_count));
      for (const std::string& node : start.nodes) EXPECT_TRUE(used.insert(node).second) << node;
    }
    EXPECT_LE(used.size(), world.nodes.size());
  });
}

TEST_P(RandomQueues, WaitsAreInQueueOrderAndTheHeadDoesNotFit) {
  ForEachWorld([](const World& world, const Decision& decision) {
    const PendingJob* head = nullptr;
    for (size_t i = 0; i < decision.waits.size(); ++i) {
      const PendingJob& job = world.Pending(decision.waits[i].job_id);
      if (i > 0) {
        EXPECT_TRUE(world.ComesFirst(world.Pending(decision.waits[i - 1].job_id), job));
      }
      if (head == nullptr && world.Fits(job)) head = &job;
    }
    if (head == nullptr) return;
    size_t free = world.FreeNodes();
    for (const Start& start : decision.starts) {
      if (world.ComesFirst(world.Pending(start.job_id), *head)) free -= start.nodes.size();
    }
    EXPECT_LT(free, static_cast<size_t>(head->node_count));
  });
}

TEST_P(RandomQueues, WhatGoesFirstNeverDelaysTheHead) {
  ForEachWorld([](const World& world, const Decision& decision) {
    for (const Wait& wait : decision.waits) {
      const PendingJob& head = world.Pending(wait.job_id);
      if (!world.Fits(head)) continue;
      // The same world without what is behind the head.
      World alone = world;
      std::erase_if(alone.pending, [&](const PendingJob& job) {
        return !world.ComesFirst(job, head) && job.id != head.id;
      });
      for (const Wait& other : alone.Decide().waits) {
        if (other.job_id != head.id) continue;
        EXPECT_EQ(other.expected_start, wait.expected_start);
      }
      if (wait.expected_start) {
        // At that time, the ends of what runs then leave it enough nodes.
        int used = 0;
        for (const RunningJob& job : world.running) {
          if (job.expected_end > *wait.expected_start) used += static_cast<int>(job.nodes.size());
        }
        for (const Start& start : decision.starts) {
          const PendingJob& job = world.Pending(start.job_id);
          if (kNow + job.time_limit > *wait.expected_start) used += job.node_count;
        }
        EXPECT_LE(used + head.node_count, static_cast<int>(world.nodes.size()));
      }
      return;
    }
  });
}

TEST_P(RandomQueues, TheDecisionDoesNotDependOnTheOrderItIsGivenTheJobs) {
  ForEachWorld([](const World& world, const Decision& decision) {
    World reversed = world;
    std::reverse(reversed.pending.begin(), reversed.pending.end());
    EXPECT_EQ(Started(reversed.Decide()), Started(decision));
    EXPECT_EQ(Reasons(reversed.Decide()), Reasons(decision));
  });
}

// Carried out over time with jobs that use their whole limit, every job that fits runs in the end.
TEST_P(RandomQueues, NobodyStarves) {
  for (int seed = GetParam() * 50; seed < (GetParam() + 1) * 50; ++seed) {
    World world(seed);
    for (PendingJob& job : world.pending) {
      job.time_limit = std::min(job.time_limit, absl::Hours(2));
    }
    for (RunningJob& job : world.running) {
      job.expected_end = std::min(job.expected_end, kNow + absl::Hours(2));
    }
    absl::Time now = kNow;
    std::map<std::string, absl::Time> promised;
    while (true) {
      const Decision decision = Schedule(world.pending, world.running, Nodes(world.nodes), now);
      for (const Start& start : decision.starts) {
        const PendingJob job = world.Pending(start.job_id);
        const auto promise = promised.emplace(job.id, now).first;
        EXPECT_LE(now, promise->second) << "seed " << seed;
        world.running.push_back({job.id, start.nodes, now + job.time_limit});
        std::erase_if(world.pending, [&](const PendingJob& p) { return p.id == job.id; });
      }
      // The head's expected start is a promise: nothing that comes later in this queue delays it.
      for (const Wait& wait : decision.waits) {
        if (!world.Fits(world.Pending(wait.job_id))) continue;
        ASSERT_TRUE(wait.expected_start.has_value());
        EXPECT_TRUE(wait.starts_by_then) << "seed " << seed;
        promised.emplace(wait.job_id, *wait.expected_start);
        break;
      }
      if (world.running.empty()) break;
      now = world.running[0].expected_end;
      for (const RunningJob& job : world.running) now = std::min(now, job.expected_end);
      std::erase_if(world.running, [&](const RunningJob& job) { return job.expected_end <= now; });
    }
    for (const PendingJob& job : world.pending) EXPECT_FALSE(world.Fits(job)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tutti::scheduler
