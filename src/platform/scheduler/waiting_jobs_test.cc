#include "platform/scheduler/waiting_jobs.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <limits>
#include <optional>
#include <random>

#include "absl/strings/str_cat.h"

namespace tutti::scheduler {
namespace {
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const absl::Time kToday = absl::FromUnixSeconds(1'800'000'000);

std::vector<std::string> StartTexts(const std::vector<Start>& starts) {
  std::vector<std::string> told;
  for (const Start& start : starts) {
    told.push_back(start.job_id);
    for (const std::string& node : start.nodes) absl::StrAppend(&told.back(), " ", node);
  }
  return told;
}

std::vector<ClusterNode> NodesNamed(const std::vector<std::string>& names) {
  std::vector<ClusterNode> nodes;
  for (const std::string& name : names) nodes.push_back({name});
  return nodes;
}

// A queue, what runs, and nodes, of any shape.
class AnyCluster {
 public:
  explicit AnyCluster(unsigned seed) : random_(seed) {
    const int count = Upto(8);
    for (int i = 0; i < count; ++i) nodes.push_back(absl::StrCat("n", i));
    for (int i = 0; i < count && Upto(2) > 0; ++i) {
      running.push_back({absl::StrCat("r", i), {nodes[i]}, kToday + Limit()});
    }
    for (int i = Upto(30); i > 0; --i) {
      const auto priority = static_cast<spec::Priority>(Upto(2));
      pending.push_back({absl::StrCat("j", i), priority, i % 20, Upto(5), Limit()});
    }
  }

  std::vector<PendingJob> pending;
  std::vector<RunningJob> running;
  std::vector<std::string> nodes;

 private:
  int Upto(int most) { return static_cast<int>(random_() % (most + 1)); }
  absl::Duration Limit() {
    const int minutes = Upto(4) * 10 - 10;
    return minutes < 0 ? absl::InfiniteDuration() : absl::Minutes(minutes);
  }

  std::minstd_rand random_;
};

TEST(WaitingJobs, StartsAreThoseThatAPassOverTheWholeQueueDecidesOn) {
  size_t starts = 0;
  for (unsigned seed = 1; seed <= 3000; ++seed) {
    const AnyCluster any(seed);
    WaitingJobs waiting;
    for (const PendingJob& job : any.pending) waiting.Add(job);
    const Decision whole = Schedule(any.pending, any.running, NodesNamed(any.nodes), kToday);
    ASSERT_EQ(StartTexts(StartsOf(waiting, any.running, NodesNamed(any.nodes), kToday)),
              StartTexts(whole.starts))
        << seed;
    const Decision in_order =
        Schedule(waiting.First(waiting.size()), any.running, NodesNamed(any.nodes), kToday);
    ASSERT_EQ(in_order.waits.size(), whole.waits.size());
    for (size_t i = 0; i < whole.waits.size(); ++i) {
      ASSERT_EQ(in_order.waits[i].job_id, whole.waits[i].job_id) << seed;
    }
    starts += whole.starts.size();
  }
  EXPECT_GT(starts, 1000u);
}

TEST(WaitingJobs, AJobAmongThemStartsAsIfItWereOneOfThem) {
  size_t starts = 0, after_others = 0;
  for (unsigned seed = 1; seed <= 3000; ++seed) {
    AnyCluster any(seed);
    if (any.pending.empty()) continue;
    PendingJob last = any.pending.back();
    last.sequence = std::numeric_limits<int64_t>::max();
    any.pending.pop_back();
    WaitingJobs waiting;
    for (const PendingJob& job : any.pending) waiting.Add(job);
    const std::vector<ClusterNode> nodes = NodesNamed(any.nodes);
    const std::optional<Start> start = StartAmong(waiting, last, any.running, nodes, kToday);
    any.pending.push_back(last);
    const std::vector<Start> all = Schedule(any.pending, any.running, nodes, kToday).starts;
    std::vector<Start> its;
    std::copy_if(all.begin(), all.end(), std::back_inserter(its),
                 [&](const Start& one) { return one.job_id == last.id; });
    ASSERT_EQ(StartTexts(start ? std::vector<Start>{*start} : std::vector<Start>{}),
              StartTexts(its))
        << seed;
    starts += its.size();
    after_others += its.empty() || all.size() == 1 ? 0 : 1;
  }
  EXPECT_GT(starts, 200u);
  EXPECT_GT(after_others, 50u);
}

// "… ; 3 or more jobs are ahead": 3.
int Ahead(const std::string& reason) {
  int ahead = -1;
  const size_t at = reason.find("; ");
  if (at != std::string::npos) std::sscanf(reason.c_str() + at, "; %d ", &ahead);
  return ahead;
}

// Starts what can start now, until nothing can.
void StartAll(WaitingJobs& waiting, std::vector<RunningJob>& running,
              const std::vector<ClusterNode>& nodes) {
  for (auto starts = StartsOf(waiting, running, nodes, kToday); !starts.empty();
       starts = StartsOf(waiting, running, nodes, kToday)) {
    for (const Start& start : starts) {
      const absl::Duration limit = std::get<absl::Duration>(*waiting.KindOf(start.job_id));
      running.push_back({start.job_id, start.nodes, kToday + limit});
      waiting.Remove(start.job_id);
    }
  }
}

TEST(WaitingJobs, WhatTheFirstWaitForIsExactAndOfThoseBehindTheirKindIsTold) {
  constexpr size_t kMost = 6;
  size_t exact = 0, of_kind = 0, at_least = 0;
  for (unsigned seed = 1; seed <= 3000; ++seed) {
    AnyCluster any(seed);
    WaitingJobs waiting;
    for (const PendingJob& job : any.pending) waiting.Add(job);
    const std::vector<ClusterNode> nodes = NodesNamed(any.nodes);
    StartAll(waiting, any.running, nodes);
    const std::vector<PendingJob> told = waiting.First(kMost);
    const Waits waits(told, Schedule(told, any.running, nodes, kToday).waits);
    const std::vector<PendingJob> all = waiting.First(waiting.size());
    const auto first = all.begin() + static_cast<int>(std::min(kMost, all.size()));
    for (const Wait& whole : Schedule(all, any.running, nodes, kToday).waits) {
      const Wait* const wait = waits.Of(whole.job_id, waiting);
      if (told.size() == 2 * kMost && wait == nullptr) continue;  // of yet another kind
      ASSERT_NE(wait, nullptr) << seed << " " << whole.job_id;
      const auto is_it = [&](const PendingJob& job) { return job.id == whole.job_id; };
      if (std::any_of(all.begin(), first, is_it)) {
        ASSERT_EQ(wait->reason, whole.reason) << seed;
        ASSERT_EQ(wait->expected_start, whole.expected_start) << seed;
        ++exact;
        continue;
      }
      ASSERT_EQ(wait->expected_start, std::nullopt);
      ++of_kind;
      if (wait->reason == whole.reason || wait->reason.find(" or more") == std::string::npos) {
        continue;
      }
      ++at_least;
      ASSERT_GE(Ahead(whole.reason), Ahead(wait->reason)) << wait->reason << "; " << whole.reason;
    }
  }
  EXPECT_GT(exact, 5000u);
  EXPECT_GT(of_kind, 5000u);
  EXPECT_GT(at_least, 1000u);
}

TEST(WaitingJobs, NothingIsKnownOfAJobThatLeavesTheQueueAndAllMayWaitForTheSame) {
  WaitingJobs waiting;
  waiting.Add({.id = "a", .sequence = 1});
  waiting.Add({.id = "b", .sequence = 2});
  const std::vector<PendingJob> told = waiting.First(5);
  Waits waits(told, Schedule(told, {}, {}, kToday).waits);
  EXPECT_EQ(waits.Of("a", waiting)->reason, "the cluster has no nodes");
  waiting.Remove("a");
  waits.Forget("a");
  EXPECT_EQ(waits.Of("a", waiting), nullptr);
  waits = Waits("the disk is full");
  EXPECT_EQ(waits.Of("b", waiting)->reason, "the disk is full");
  EXPECT_EQ(waits.Of("of-a-cluster", waiting), nullptr);
  EXPECT_EQ(Waits().Of("b", waiting), nullptr);
}

TEST(WaitingJobs, WhatWasRemovedOrReplacedDoesNotStart) {
  WaitingJobs waiting;
  waiting.Add({.id = "a", .sequence = 1});
  waiting.Add({.id = "b", .sequence = 2});
  waiting.Remove("a");
  waiting.Remove("unknown");
  EXPECT_THAT(StartTexts(StartsOf(waiting, {}, NodesNamed({"n1", "n2"}), kToday)),
              ElementsAre("b n1"));
  waiting.Add({.id = "b", .sequence = 2, .node_count = 2});
  EXPECT_EQ(waiting.size(), 1u);
  EXPECT_THAT(StartTexts(StartsOf(waiting, {}, NodesNamed({"n1", "n2"}), kToday)),
              ElementsAre("b n1 n2"));
  EXPECT_THAT(StartsOf(waiting, {}, NodesNamed({"n1"}), kToday), IsEmpty());
  waiting.Remove("b");
  EXPECT_TRUE(waiting.empty());
  EXPECT_TRUE(waiting.lines().empty());
}

TEST(WaitingJobs, KnowsThePlaceOfEachJobAmongThoseOfAllKinds) {
  WaitingJobs queue;
  queue.Add({.id = "large", .sequence = 1, .node_count = 4});
  queue.Add({.id = "small", .sequence = 2, .node_count = 1});
  queue.Add({.id = "urgent", .priority = spec::Priority::kHigh, .sequence = 3});
  queue.Add({.id = "late", .sequence = 4, .node_count = 4});
  EXPECT_THAT(queue.FirstIds(9), ElementsAre("urgent", "large", "small", "late"));
  EXPECT_THAT(queue.FirstIds(2), ElementsAre("urgent", "large"));
  EXPECT_EQ(queue.AheadOf("urgent"), 0);
  EXPECT_EQ(queue.AheadOf("late"), 3);
  EXPECT_EQ(queue.AheadOf("none"), std::nullopt);
  queue.Remove("large");
  queue.Add({.id = "urgent", .sequence = 3});  // has lost its priority
  EXPECT_THAT(queue.FirstIds(9), ElementsAre("small", "urgent", "late"));
  EXPECT_EQ(queue.AheadOf("late"), 2);
}

}  // namespace
}  // namespace tutti::scheduler
