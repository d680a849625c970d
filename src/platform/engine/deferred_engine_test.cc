#include "platform/engine/deferred_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/synchronization/notification.h"
#include "base/test_patience.h"
#include "platform/engine/fake/engine_fake.h"
#include "platform/engine/gang_for_tests.h"

namespace tutti::engine {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class DeferredEngineTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<Engine>> Open() {
    ++tries_;
    if (during_open_) during_open_();
    if (!failure_.ok()) return failure_;
    return std::make_unique<FakeEngine>(2);
  }

  int tries_ = 0;
  absl::Status failure_ = absl::UnavailableError("mkdir /shared: No route to host");
  std::function<void()> during_open_;
  base::ManualClock clock_{absl::FromUnixSeconds(1'800'000'000)};
  DeferredEngine engine_{{.traits = {.schedules_itself = true},
                          .open = [this] { return Open(); },
                          .patience = absl::ZeroDuration()},
                         &clock_};
};

TEST_F(DeferredEngineTest, IsOpenedByTheFirstObserve) {
  EXPECT_EQ(engine_.WhyOutOfReach(), "it is being opened");
  EXPECT_EQ(tries_, 0);
  failure_ = absl::OkStatus();
  EXPECT_THAT(*engine_.Observe(), IsEmpty());
  EXPECT_EQ(engine_.WhyOutOfReach(), "");
  EXPECT_EQ(engine_.ListNodes()->size(), 2u);
  EXPECT_TRUE(engine_.Observe().ok());
  EXPECT_EQ(tries_, 1);
}

TEST_F(DeferredEngineTest, UntilItIsOpenEachCallSaysWhyAndSinceWhen) {
  ASSERT_FALSE(engine_.Observe().ok());
  const std::string why =
      "mkdir /shared: No route to host (since 2027-01-15 08:00 UTC; it is tried again within 1m)";
  const absl::Status status = absl::UnavailableError(why);
  EXPECT_EQ(engine_.WhyOutOfReach(), why);
  EXPECT_EQ(engine_.Start({.id = "a.1"}), status);
  EXPECT_EQ(engine_.Stop("a.1", absl::ZeroDuration()), status);
  EXPECT_EQ(engine_.Kill("a.1", 0), status);
  EXPECT_EQ(engine_.Release("a.1"), status);
  EXPECT_EQ(engine_.ListNodes().status(), status);
  EXPECT_EQ(engine_.WhyNeverOn({}, base::Deadline::After(absl::ZeroDuration())), "");
  engine_.Refresh();
  EXPECT_TRUE(engine_.traits().schedules_itself);
  EXPECT_EQ(tries_, 1);
  // What fails later has lasted since then.
  clock_.Advance(absl::Minutes(10));
  failure_ = absl::FailedPreconditionError("another service holds it");
  EXPECT_EQ(engine_.Observe().status(),
            absl::UnavailableError("another service holds it (since 2027-01-15 08:00 UTC; it is "
                                   "tried again within 1m)"));
}

TEST_F(DeferredEngineTest, WaitsTwiceAsLongAfterEachFailureUpToAMinute) {
  std::vector<int> gaps;
  for (int since = 0; gaps.size() < 11; ++since) {
    ASSERT_LE(since, 60);
    const int before = tries_;
    EXPECT_FALSE(engine_.Observe().ok());
    if (tries_ > before) gaps.push_back(std::exchange(since, 0));
    clock_.Advance(absl::Seconds(1));
  }
  int longest = 1;
  for (size_t i = 1; i < gaps.size(); ++i) {  // up to half of it goes by chance
    EXPECT_LE(gaps[i], longest) << i;
    EXPECT_GE(2 * gaps[i], longest) << i;
    longest = std::min(2 * longest, 60);
  }
  failure_ = absl::OkStatus();
  clock_.Advance(absl::Minutes(1));
  EXPECT_TRUE(engine_.Observe().ok());
}

TEST_F(DeferredEngineTest, AClockThatIsSetBackDelaysNoTry) {
  EXPECT_FALSE(engine_.Observe().ok());
  failure_ = absl::OkStatus();
  clock_.Set(absl::FromUnixSeconds(0));
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(engine_.Observe().ok());
}

TEST_F(DeferredEngineTest, NobodyWaitsForAnOpeningThatHangs) {
  absl::Notification hangs, goes_on;
  failure_ = absl::OkStatus();
  during_open_ = [&] {
    hangs.Notify();
    goes_on.WaitForNotificationWithTimeout(base::Patient(absl::Seconds(20)));
  };
  std::thread opener([&] { EXPECT_TRUE(engine_.Observe().ok()); });
  ASSERT_TRUE(hangs.WaitForNotificationWithTimeout(base::Patient(absl::Seconds(20))));
  EXPECT_EQ(engine_.WhyOutOfReach(), "it is being opened");
  EXPECT_FALSE(engine_.ListNodes().ok());
  EXPECT_FALSE(engine_.Observe().ok()) << "one thread opens it";
  EXPECT_FALSE(engine_.Stop("a.1", absl::ZeroDuration()).ok());
  goes_on.Notify();
  opener.join();
  EXPECT_EQ(tries_, 1);
  EXPECT_TRUE(engine_.ListNodes().ok());
}

TEST_F(DeferredEngineTest, AFaultThatShowsAtOnceIsKnownToWhoAsksForItFirst) {
  failure_ = absl::PermissionDeniedError("mkdir /home/nodes: Permission denied");
  EXPECT_EQ(engine_.TryNow(base::Patient(absl::Seconds(20))), failure_);
  failure_ = absl::OkStatus();
  DeferredEngine other({.open = [this] { return Open(); }}, &clock_);
  EXPECT_TRUE(other.TryNow(base::Patient(absl::Seconds(20))).ok());
  EXPECT_EQ(other.WhyOutOfReach(), "");
}

TEST_F(DeferredEngineTest, AFirstTryThatHangsGoesOnAndTellsTheNodesThatAreKnown) {
  absl::Notification hangs, goes_on;
  failure_ = absl::OkStatus();
  during_open_ = [&] {
    hangs.Notify();
    goes_on.WaitForNotificationWithTimeout(base::Patient(absl::Seconds(20)));
  };
  DeferredEngine engine({.open = [this] { return Open(); }, .nodes = {Node{.name = "n1"}}},
                        &clock_);
  EXPECT_TRUE(engine.TryNow(absl::Milliseconds(1)).ok());
  ASSERT_TRUE(hangs.WaitForNotificationWithTimeout(base::Patient(absl::Seconds(20))));
  EXPECT_EQ(engine.ListNodes()->front().name, "n1");
  EXPECT_EQ(engine.WhyOutOfReach(), "it is being opened");
  clock_.Advance(absl::Seconds(6));
  EXPECT_THAT(engine.WhyOutOfReach(), HasSubstr("its folder does not answer"));
  EXPECT_EQ(engine.Observe().status().message(), engine.WhyOutOfReach()) << "one thread opens it";
  goes_on.Notify();
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] { return engine.Observe().ok(); }));
  EXPECT_EQ(tries_, 1);
}

// A service cannot begin for another reason, and is to end with that.
TEST_F(DeferredEngineTest, AFirstTryThatHangsKeepsNobodyFromEnding) {
  struct Folder {
    absl::Notification hangs, goes_on, has_ended;
  };
  const auto folder = std::make_shared<Folder>();
  const auto open = [folder]() -> absl::StatusOr<std::unique_ptr<Engine>> {
    const absl::Cleanup ends = [folder] { folder->has_ended.Notify(); };
    folder->hangs.Notify();
    folder->goes_on.WaitForNotification();
    return std::make_unique<FakeEngine>(2);
  };
  {
    DeferredEngine engine({.open = open}, &clock_);
    EXPECT_TRUE(engine.TryNow(absl::Milliseconds(1)).ok());
    ASSERT_TRUE(folder->hangs.WaitForNotificationWithTimeout(base::Patient(absl::Seconds(20))));
  }
  EXPECT_FALSE(folder->has_ended.HasBeenNotified());
  folder->goes_on.Notify();
  EXPECT_TRUE(folder->has_ended.WaitForNotificationWithTimeout(base::Patient(absl::Seconds(20))));
}

// A service has just begun, and somebody asks it for the nodes.
TEST_F(DeferredEngineTest, ListsItsNodesOnceTheFirstTryHasEnded) {
  DeferredEngine engine({.open = [this] { return Open(); }, .patience = absl::Hours(1)}, &clock_);
  std::thread opener([&] { EXPECT_FALSE(engine.Observe().ok()); });
  EXPECT_THAT(std::string(engine.ListNodes().status().message()),
              StartsWith("mkdir /shared: No route to host"));
  opener.join();
}

}  // namespace
}  // namespace tutti::engine
