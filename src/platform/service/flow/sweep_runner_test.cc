// The decisions themselves are tested in platform/flow, what becomes of them in
// service_flow_test.cc.
#include "platform/service/flow/sweep_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/file.h"
#include "platform/engine/fake/engine_fake.h"

namespace tutti::service {
namespace {

class SweepRunnerTest : public ::testing::Test {
 protected:
  SweepRunnerTest() {
    store::Job job;
    job.id = "s";
    job.spec.kind = spec::JobKind::kSweep;
    job.spec.command = "true";
    spec::Sweep& sweep = job.spec.sweep.emplace();
    sweep.sampling = spec::Sampling::kBayesian;
    sweep.parameters = {{.name = "x", .kind = spec::SearchKind::kUniform, .low = 0, .high = 1}};
    sweep.max_concurrent = 2;
    const store::Event queued{.time = clock_.Now()};
    const auto record = store_->InsertJob(job, queued);
    EXPECT_TRUE(record.ok()) << record.status();
    StateLock lock(state_);
    state_.nodes.resize(4);
    table_.Add(*record);
  }
  // Returns what follows from one look at the sweep.
  Effects Advance() {
    Effects effects;
    StateLock lock(state_);
    const auto ended = sweeps_.Advance(*table_.Find("s"), effects);
    EXPECT_TRUE(ended.ok()) << ended.status();
    return effects;
  }
  size_t trials() {
    StateLock lock(state_);
    return table_.Find("s")->flow->children.size();
  }

  const base::TemporaryDirectory folder_;
  const base::ManualClock clock_;
  const std::unique_ptr<store::Store> store_ = *store::Store::Open(folder_.path() / "tutti.db");
  engine::FakeEngine engine_{1};
  SharedState state_{{.directory = folder_.path()}, store_.get(), &engine_, &clock_};
  JobTable table_{state_};
  FlowChildren children_{state_, table_};
  ChildInsertion insertion_{state_, table_, children_};
  FlowTransitions transitions_{state_, table_};
  SweepRunner sweeps_{state_, table_, transitions_, insertion_};
};

// The task takes the lock to note what it has found: run under it, it would never end.
TEST_F(SweepRunnerTest, ValuesThatTakeLongToFindAreFoundWithoutTheLock) {
  const Effects asked = Advance();
  ASSERT_EQ(asked.decisions.size(), 1u);
  EXPECT_EQ(trials(), 0u);
  EXPECT_TRUE(Advance().decisions.empty()) << "a task is at it";
  asked.decisions[0].run();
  EXPECT_TRUE(Advance().decisions.empty()) << "both trials that may run at once have begun";
  EXPECT_EQ(trials(), 2u);
}

TEST_F(SweepRunnerTest, WhatIsProposedForASweepThatIsOverIsForgotten) {
  const Effects asked = Advance();
  ASSERT_EQ(asked.decisions.size(), 1u);
  {
    StateLock lock(state_);
    LiveJob* const sweep = table_.Find("s");
    ASSERT_TRUE(
        table_.Append(*sweep, {store::JobState::kCanceled, "canceled", Cause::kCanceled}).ok());
    table_.flows().erase(sweep);
    table_.Remove(*sweep);
  }
  asked.decisions[0].run();
  EXPECT_TRUE(absl::IsNotFound(store_->GetJob("s.trial-1").status()));
}

}  // namespace
}  // namespace tutti::service
