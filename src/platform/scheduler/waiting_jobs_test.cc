#include "platform/scheduler/waiting_jobs.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
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

std::vector<std::string> Told(const std::vector<Start>& starts) {
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
    ASSERT_EQ(Told(StartsOf(waiting, any.running, NodesNamed(any.nodes), kToday)),
              Told(whole.starts))
        << seed;
    const Decision in_order =
        Schedule(waiting.InOrder(), any.running, NodesNamed(any.nodes), kToday);
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
    ASSERT_EQ(Told(start ? std::vector<Start>{*start} : std::vector<Start>{}), Told(its)) << seed;
    starts += its.size();
    after_others += its.empty() || all.size() == 1 ? 0 : 1;
  }
  EXPECT_GT(starts, 200u);
  EXPECT_GT(after_others, 50u);
}

TEST(WaitingJobs, WhatWasRemovedOrReplacedDoesNotStart) {
  WaitingJobs waiting;
  waiting.Add({.id = "a", .sequence = 1});
  waiting.Add({.id = "b", .sequence = 2});
  waiting.Remove("a");
  waiting.Remove("unknown");
  EXPECT_THAT(Told(StartsOf(waiting, {}, NodesNamed({"n1", "n2"}), kToday)), ElementsAre("b n1"));
  waiting.Add({.id = "b", .sequence = 2, .node_count = 2});
  EXPECT_EQ(waiting.size(), 1u);
  EXPECT_THAT(Told(StartsOf(waiting, {}, NodesNamed({"n1", "n2"}), kToday)),
              ElementsAre("b n1 n2"));
  EXPECT_THAT(StartsOf(waiting, {}, NodesNamed({"n1"}), kToday), IsEmpty());
  waiting.Remove("b");
  EXPECT_TRUE(waiting.empty());
  EXPECT_TRUE(waiting.lines().empty());
}

}  // namespace
}  // namespace tutti::scheduler
