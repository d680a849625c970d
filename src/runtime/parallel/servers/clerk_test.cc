#include "runtime/parallel/servers/clerk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <queue>
#include <random>

namespace tutti::parallel {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Drives a clerk as a server does, with workers that need so many ticks for a step.
class Simulation {
 public:
  Simulation(std::vector<int64_t> ticks, int64_t staleness)
      : ticks_(std::move(ticks)), clerk_(static_cast<int>(ticks_.size()), staleness) {}

  // Works until all meet, or so many ticks have passed.
  void Run(int64_t step, int64_t end, int64_t most_ticks = 1 << 30) {
    clerk_.Begin(step, end);
    for (size_t i = 0; i < ticks_.size(); ++i) clerk_.Ready(static_cast<int>(i));
    for (now_ = 0; now_ <= most_ticks; ++now_) {
      Give();
      if (clerk_.over()) return;
      for (auto& [worker, until] : busy_) {
        if (until == now_ + 1) coming_.push(worker);
      }
      for (; !coming_.empty(); coming_.pop()) Take(coming_.front());
    }
  }

  Clerk& clerk() { return clerk_; }
  int64_t most_staleness() const { return most_; }
  int64_t gradients() const { return gradients_; }
  const std::map<int, std::vector<int64_t>>& steps() const { return steps_; }
  int64_t gradients_of(int worker) { return by_worker_[worker]; }

 private:
  void Give() {
    while (const auto grant = clerk_.NextGrant()) {
      std::vector<int64_t>& own = steps_[grant->worker];
      own.insert(own.end(), grant->steps.begin(), grant->steps.end());
      if (grant->begins) {
        busy_[grant->worker] = now_ + ticks_[static_cast<size_t>(grant->worker)];
      }
    }
  }
  void Take(int worker) {
    busy_.erase(worker);
    for (const Clerk::Gradient& each : clerk_.Came(worker)) {
      most_ = std::max(most_, each.staleness);
      ++gradients_;
      ++by_worker_[each.worker];
      clerk_.Ready(each.worker);
    }
  }

  const std::vector<int64_t> ticks_;
  Clerk clerk_;
  int64_t now_ = 0, most_ = 0, gradients_ = 0;
  std::map<int, int64_t> busy_;
  std::queue<int> coming_;
  std::map<int, std::vector<int64_t>> steps_;
  std::map<int, int64_t> by_worker_;
};

TEST(Clerk, EachStepIsToldOnceWhoeverIsFast) {
  for (const int64_t staleness : {0, 1, 2, 3, 7, 100}) {
    Simulation simulation({1, 5, 2, 3}, staleness);
    simulation.Run(10, 47);
    std::vector<int64_t> all;
    for (const auto& [worker, steps] : simulation.steps()) {
      EXPECT_TRUE(std::is_sorted(steps.begin(), steps.end()));
      all.insert(all.end(), steps.begin(), steps.end());
    }
    std::sort(all.begin(), all.end());
    ASSERT_EQ(all.size(), 37u) << staleness;
    for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], static_cast<int64_t>(10 + i));
    EXPECT_EQ(simulation.clerk().version(), 47);
    EXPECT_EQ(simulation.gradients(), 37);
  }
}

TEST(Clerk, NoGradientIsStalerThanTheBound) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<int64_t> ticks(1 + random() % 6);
    for (int64_t& each : ticks) each = 1 + random() % 9;
    const auto bound = static_cast<int64_t>(random() % 9);
    Simulation simulation(ticks, bound);
    simulation.Run(0, 60);
    EXPECT_LE(simulation.most_staleness(), bound);
    EXPECT_EQ(simulation.gradients(), 60);
  }
}

// The formula of docs/parallel: while the slow one computes a step, the others, twice as fast, have
// time for six, of which the bound lets through so many. A bound of 2 lets three compute at a time:
// the three fast ones, then the slow one and two others.
TEST(Clerk, ASlowWorkerHoldsTheOthersUpByTheBoundAlone) {
  constexpr int64_t kRounds = 400;
  const auto of_synchronous = [](int64_t staleness) {
    Simulation simulation({10, 10, 10, 20}, staleness);
    simulation.Run(0, 1 << 20, 20 * kRounds);
    return static_cast<double>(simulation.gradients()) / (4 * kRounds);
  };
  EXPECT_NEAR(of_synchronous(0), 1, 0.02);
  EXPECT_NEAR(of_synchronous(2), 6.0 / 4 * 2 / 3, 0.02);
  EXPECT_NEAR(of_synchronous(4), 5.0 / 4, 0.02);
  EXPECT_NEAR(of_synchronous(8), 7.0 / 4, 0.02);
  EXPECT_NEAR(of_synchronous(100), 7.0 / 4, 0.02);
}

TEST(Clerk, RoundsAreTheSameWhoeverComesFirst) {
  Clerk clerk(2, /*staleness=*/0);
  clerk.Begin(0, 5);
  clerk.Ready(1);
  EXPECT_FALSE(clerk.NextGrant());
  clerk.Ready(0);
  auto grant = clerk.NextGrant();
  EXPECT_EQ(grant->worker, 0);
  EXPECT_THAT(grant->steps, ElementsAre(0, 2));
  grant = clerk.NextGrant();
  EXPECT_EQ(grant->worker, 1);
  EXPECT_THAT(grant->steps, ElementsAre(1, 3));
  EXPECT_FALSE(clerk.NextGrant());
  EXPECT_THAT(clerk.Came(1), IsEmpty());
  const auto both = clerk.Came(0);
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].worker, 0);
  EXPECT_EQ(both[1].worker, 1);
  EXPECT_EQ(clerk.version(), 2);
}

TEST(Clerk, AStopEndsBehindWhatWasTold) {
  Clerk clerk(2, /*staleness=*/4);
  clerk.Begin(0, 100);
  clerk.Ready(0);
  EXPECT_THAT(clerk.NextGrant()->steps, ElementsAre(0, 1));
  clerk.Stop();
  EXPECT_EQ(clerk.end(), 2);
  clerk.Ready(1);
  EXPECT_FALSE(clerk.NextGrant()->begins);
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(clerk.over());
    clerk.Came(0);
    clerk.Ready(0);
    EXPECT_EQ(clerk.NextGrant()->begins, i == 0);
  }
  EXPECT_TRUE(clerk.over());
  EXPECT_EQ(clerk.version(), 2);
}

}  // namespace
}  // namespace tutti::parallel
