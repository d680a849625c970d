// How logs are brought to a store is in service_stored_logs_test.cc.
#include "platform/service/stored_logs/log_storage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/file.h"
#include "platform/engine/fake/engine_fake.h"
#include "platform/service/jobs/live_job.h"

namespace tutti::service {
namespace {

using State = store::LogsNote::State;

class LogStorageTest : public ::testing::Test {
 protected:
  // A job that has ended, whose logs go to a store.
  void Ends(const std::string& name) {
    store::Job job;
    job.id = name;
    job.spec.kind = spec::JobKind::kCommand;
    job.spec.logs_place = spec::DataPlace{.kind = spec::StoreKind::kS3, .container = "runs"};
    store::Event event{.time = clock_.Now(), .state = store::JobState::kQueued};
    const auto record = store_->InsertJob(job, event);
    ASSERT_TRUE(record.ok()) << record.status();
    event.state = store::JobState::kCompleted;
    StateLock lock(state_);
    logs_.OnEvent(record->job, event, {});
  }
  store::LogsNote Note(const std::string& name) { return store_->LogsNoteOf(name).value().value(); }
  void CountCommit() {
    ++commits_;
    if (!state_.mutex.TryLock()) {
      ++under_the_lock_;
      return;
    }
    state_.mutex.Unlock();
  }

  const base::TemporaryDirectory folder_;
  base::ManualClock clock_;
  bool counts_ = false;
  int commits_ = 0, under_the_lock_ = 0;
  const std::unique_ptr<store::Store> store_ =
      *store::Store::Open(folder_.path() / "tutti.db", {.on_commit = [this](int64_t number) {
                            if (counts_ && number % 2 == 1) CountCommit();
                          }});
  engine::FakeEngine engine_{1};
  SharedState state_{{.directory = folder_.path()}, store_.get(), &engine_, &clock_};
  std::function<absl::StatusOr<std::string>()> bring_ = [] { return ""; };
  LogStorage logs_{state_, [this](const std::string&, int64_t) { return bring_(); }};
};

TEST_F(LogStorageTest, WhatThrowsIsTriedAgainAfterAPause) {
  int calls = 0;
  bring_ = [&]() -> absl::StatusOr<std::string> {
    if (++calls == 1) throw std::bad_alloc();
    return "";
  };
  Ends("a");
  Ends("b");
  logs_.BringDue();
  logs_.BringDue();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(Note("a").state, State::kPending);
  clock_.Advance(absl::Minutes(1));
  logs_.BringDue();
  EXPECT_EQ(Note("a").state, State::kStored);
  EXPECT_EQ(Note("b").state, State::kStored);
}

TEST_F(LogStorageTest, ManyAreGivenUpInOneTransactionAndNothingIsWrittenUnderTheLock) {
  constexpr int kJobs = 100;
  bring_ = [] { return absl::UnavailableError("the store is away"); };
  for (int i = 0; i < kJobs; ++i) Ends(absl::StrCat("j", i));
  counts_ = true;
  logs_.BringDue();
  EXPECT_EQ(commits_, 1) << "why the first waits";
  clock_.Advance(absl::Hours(31 * 24));
  logs_.BringDue();
  EXPECT_EQ(commits_, 2);
  EXPECT_EQ(under_the_lock_, 0);
  for (int i = 0; i < kJobs; ++i) {
    const store::LogsNote note = Note(absl::StrCat("j", i));
    EXPECT_EQ(note.state, State::kGivenUp);
    EXPECT_EQ(note.reason, "given up after 30 days: the store is away");
  }
}

TEST_F(LogStorageTest, WhatIsStoredOrGivenUpAtOnceIsNotedWithoutTheLock) {
  Ends("a");
  counts_ = true;
  logs_.BringDue();
  EXPECT_EQ(Note("a").state, State::kStored);
  bring_ = [] { return absl::InvalidArgumentError("retention was first"); };
  counts_ = false;
  Ends("b");
  counts_ = true;
  logs_.BringDue();
  EXPECT_EQ(Note("b").state, State::kGivenUp);
  EXPECT_EQ(Note("b").reason, "retention was first");
  EXPECT_EQ(commits_, 2);
  EXPECT_EQ(under_the_lock_, 0);
}

}  // namespace
}  // namespace tutti::service
