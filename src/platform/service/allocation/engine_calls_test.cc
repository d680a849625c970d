// What the store cannot get onto the disk has no effects until it can; engines are called in
// service_launchers_test.cc.
#include "platform/service/allocation/engine_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/file.h"
#include "platform/engine/fake/engine_fake.h"

namespace tutti::service {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class EngineCallsTest : public ::testing::Test {
 protected:
  EngineCallsTest() { Written("first"); }  // which is synced in any case

  // Writes a step, and returns what follows from it: that it is noted.
  Effects Written(const std::string& name) {
    store::Job job;
    job.id = name;
    const store::Event event{.time = clock_.Now()};
    const auto record = store_->InsertJob(
        job, [&](int64_t) { return std::vector<store::Event>{event}; },
        store::Durability::kDeferred);
    EXPECT_TRUE(record.ok()) << record.status();
    Effects effects;
    effects.after = store_->LastDeferred();
    effects.tasks.push_back({name, [this, name] { done_.push_back(name); }});
    return effects;
  }
  size_t ProblemCount() {
    StateLock lock(state_);
    return state_.problems.Lines().size();
  }

  const base::TemporaryDirectory folder_;
  const base::ManualClock clock_;
  int failures_ = 0;  // of syncs, to come
  std::vector<std::string> done_;
  const std::unique_ptr<store::Store> store_ = *store::Store::Open(
      folder_.path() / "tutti.db", {.on_sync = [this] {
        return failures_-- > 0 ? absl::UnavailableError("the device fails") : absl::OkStatus();
      }});
  engine::FakeEngine engine_{1};
  SharedState state_{{.directory = folder_.path()}, store_.get(), &engine_, &clock_};
  JobTable table_{state_};
  LeavingAllocations leaving_{state_, table_};
  EngineCalls calls_{state_, table_, leaving_};
};

TEST_F(EngineCallsTest, WhatIsHeldIsDoneInItsOrderOnceTheDiskTakesIt) {
  failures_ = 3;
  calls_.Perform(Written("a"));
  calls_.Perform(Written("b"));
  EXPECT_THAT(done_, IsEmpty());
  EXPECT_TRUE(calls_.holds());
  EXPECT_EQ(ProblemCount(), 1u);
  for (int i = 0; i < 3 && !calls_.PerformHeld(); ++i) EXPECT_THAT(done_, IsEmpty());
  EXPECT_THAT(done_, ElementsAre("a", "b"));
  EXPECT_FALSE(calls_.holds());
  EXPECT_EQ(ProblemCount(), 0u);
}

TEST_F(EngineCallsTest, WhatComesLaterWaitsBehindWhatIsHeld) {
  failures_ = 1;
  calls_.Perform(Written("a"));
  calls_.Perform(Written("b"));  // the disk would take it
  EXPECT_THAT(done_, IsEmpty());
  EXPECT_TRUE(calls_.PerformHeld());
  EXPECT_THAT(done_, ElementsAre("a", "b"));
}

TEST_F(EngineCallsTest, WhatComesWhileOthersAreHandedOnIsDoneBehindThem) {
  failures_ = 1;
  Effects a = Written("a");
  a.tasks.push_back({"more", [this] { calls_.Perform(Written("c")); }});
  calls_.Perform(std::move(a));
  calls_.Perform(Written("b"));
  EXPECT_TRUE(calls_.PerformHeld());
  EXPECT_THAT(done_, ElementsAre("a", "b", "c"));
}

}  // namespace
}  // namespace tutti::service
