#include "platform/launch/usage/usage_watch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>

#include "absl/synchronization/notification.h"
#include "base/test_patience.h"
#include "base/threads/no_threads_for_tests.h"
#include "platform/launch/ranks/starter_fixture.h"

namespace tutti::launch {
namespace {

class Taker final : public DeliveryFake {
 public:
  Taker() : DeliveryFake(nullptr, nullptr, nullptr) {}
  bool WantsUsage() const override { return wants; }
  void OfferUsage(std::string) override { ++taken; }

  std::atomic<bool> wants = true;
  std::atomic<int> taken = 0;
};

class UsageWatchTest : public ::testing::Test {
 protected:
  // Tells the ranks again and again until it holds.
  template <class Condition>
  static bool TellUntil(UsageWatch& watch, const Condition& condition) {
    return base::AwaitPatiently(absl::Seconds(30), [&] {
      watch.SetRanks({{0, 1}});
      return condition();
    });
  }
  // Counts the looks.
  UsageWatch::Look Look() {
    return [this](const std::vector<RankLeader>&, absl::Duration) {
      ++looks_;
      return spec::UsageSample();
    };
  }
  Taker taker_;
  std::atomic<int> looks_ = 0;
};

TEST_F(UsageWatchTest, HandsSamplesOver) {
  UsageWatch watch(Look(), &taker_);
  EXPECT_TRUE(TellUntil(watch, [&] { return taker_.taken >= 1; }));
}

TEST_F(UsageWatchTest, DoesNotLookWhereNobodyWantsIt) {
  taker_.wants = false;
  UsageWatch watch(Look(), &taker_);
  const base::Deadline later = base::Deadline::After(absl::Seconds(2));
  EXPECT_TRUE(TellUntil(watch, [&] { return later.Expired(); }));
  EXPECT_EQ(looks_, 0);
  taker_.wants = true;
  EXPECT_TRUE(TellUntil(watch, [&] { return taker_.taken >= 1; }));
}

TEST_F(UsageWatchTest, TheJobGoesOnWhereThereMayBeNoOtherThread) {
  UsageWatch watch(Look(), &taker_);
  const base::NoThreads none;
  const base::Deadline later = base::Deadline::After(absl::Seconds(2));
  EXPECT_TRUE(TellUntil(watch, [&] { return later.Expired(); }));
  EXPECT_EQ(looks_, 0);
}

TEST_F(UsageWatchTest, TheJobGoesOnWhereALookFails) {
  UsageWatch watch(
      [this](const std::vector<RankLeader>&, absl::Duration) -> spec::UsageSample {
        ++looks_;
        throw std::runtime_error("no memory");
      },
      &taker_);
  EXPECT_TRUE(TellUntil(watch, [&] { return looks_ == 1; }));
}

TEST_F(UsageWatchTest, EndsWhereALookHangs) {
  struct Hang {
    absl::Notification begun, over, ended;
  };
  const auto hang = std::make_shared<Hang>();
  {
    UsageWatch watch(
        [hang](const std::vector<RankLeader>&, absl::Duration) {
          hang->begun.Notify();
          hang->over.WaitForNotification();
          hang->ended.Notify();
          return spec::UsageSample();
        },
        &taker_);
    EXPECT_TRUE(TellUntil(watch, [&] { return hang->begun.HasBeenNotified(); }));
  }
  hang->over.Notify();
  hang->ended.WaitForNotification();
  EXPECT_EQ(taker_.taken, 0);
}

}  // namespace
}  // namespace tutti::launch
