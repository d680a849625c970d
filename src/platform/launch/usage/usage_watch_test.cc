#include "platform/launch/usage/usage_watch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "base/test_patience.h"
#include "base/threads/no_threads_for_tests.h"
#include "platform/launch/ranks/starter_fixture.h"
#include "platform/launch/usage/process_counters.h"

namespace tutti::launch {
namespace {

class Taker final : public DeliveryFake {
 public:
  Taker() : DeliveryFake(nullptr, nullptr, nullptr) {}
  bool WantsUsage() const override { return wants; }
  void OfferUsage(std::string line) override {
    has_gpus = absl::StrContains(line, R"("gpus":[{"gpu":"3","use":0.5}])");
    ++taken;
  }

  std::atomic<bool> wants = true, has_gpus = false;
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
  UsageWatch watch(Look(), nullptr, &taker_);
  EXPECT_TRUE(TellUntil(watch, [&] { return taker_.taken >= 1; }));
}

// Each look takes a tenth of a second of a processor: were it paid for as the others, the next
// sample would come after more than a minute.
TEST_F(UsageWatchTest, HandsOverWhatGpusDoAndAsksThemAsRarelyAsItCosts) {
  std::atomic<int> asked = 0;
  const auto ask = [&asked]() -> std::vector<spec::GpuUsage> {
    ++asked;
    const absl::Duration end = ProcessorTime() + absl::Milliseconds(100);
    while (ProcessorTime() < end) {
    }
    return {{.gpu = "3", .use = 0.5}};
  };
  UsageWatch watch(Look(), ask, &taker_);
  EXPECT_TRUE(TellUntil(watch, [&] { return taker_.taken >= 4; }));
  EXPECT_TRUE(taker_.has_gpus);
  EXPECT_EQ(asked, 2) << "the first look is free";
}

TEST(LookAtGpusTest, IsNoneWithoutAGpu) {
  EXPECT_EQ(UsageWatch::LookAtGpus({}), nullptr);
  EXPECT_NE(UsageWatch::LookAtGpus({"0"}), nullptr);
}

TEST_F(UsageWatchTest, DoesNotLookWhereNobodyWantsIt) {
  taker_.wants = false;
  UsageWatch watch(Look(), nullptr, &taker_);
  const base::Deadline later = base::Deadline::After(absl::Seconds(2));
  EXPECT_TRUE(TellUntil(watch, [&] { return later.Expired(); }));
  EXPECT_EQ(looks_, 0);
  taker_.wants = true;
  EXPECT_TRUE(TellUntil(watch, [&] { return taker_.taken >= 1; }));
}

TEST_F(UsageWatchTest, TheJobGoesOnWhereThereMayBeNoOtherThread) {
  UsageWatch watch(Look(), nullptr, &taker_);
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
      nullptr, &taker_);
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
        nullptr, &taker_);
    EXPECT_TRUE(TellUntil(watch, [&] { return hang->begun.HasBeenNotified(); }));
  }
  hang->over.Notify();
  hang->ended.WaitForNotification();
  EXPECT_EQ(taker_.taken, 0);
}

}  // namespace
}  // namespace tutti::launch
