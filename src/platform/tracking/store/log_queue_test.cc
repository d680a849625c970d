#include "platform/tracking/store/log_queue.h"

#include <SQLiteCpp/Database.h>
#include <gtest/gtest.h>

#include <atomic>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/test_patience.h"

namespace tutti::tracking {
namespace {

class LogQueueTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto store =
        TrackingStore::Open(folder_.path() / "t.db", &clock_, {.on_commit = [this](int64_t) {
                              ++commits_;
                              absl::MutexLock lock(&mutex_);
                              mutex_.Await(absl::Condition(
                                  +[](bool* held) { return !*held; }, &held_));
                            }});
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    run_ = store_->CreateRun({})->info.id;
  }
  static Batch OneMetric(int64_t step) {
    return {.metrics = {{"m", {step, 1, 1}}}, .params = {}, .tags = {}};
  }

  // Lets no transaction end for as long as it lives.
  class Hold {
   public:
    explicit Hold(LogQueueTest* test) : test_(test), before_(test->commits_) { Set(true); }
    ~Hold() { Set(false); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    // Waits until one wants to write.
    void AwaitWriter() const {
      base::AwaitPatiently(absl::Seconds(20), [this] { return test_->commits_ > before_; });
    }

   private:
    void Set(bool held) const {
      absl::MutexLock lock(&test_->mutex_);
      test_->held_ = held;
    }
    LogQueueTest* const test_;
    const int64_t before_;
  };

  base::TemporaryDirectory folder_;
  base::ManualClock clock_;
  std::atomic<int64_t> commits_ = 0;  // two calls for each
  absl::Mutex mutex_;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<TrackingStore> store_;
  std::string run_;
};

TEST_F(LogQueueTest, WritesEachBatchAndTellsItsResult) {
  LogQueue queue(store_.get());
  std::atomic<int> woken = 0;
  std::vector<std::shared_ptr<const LogQueue::Pending>> batches;
  for (int64_t step = 0; step < 500; ++step) {
    const std::string run = step % 100 == 7 ? "none" : run_;
    const auto pending = queue.Add(run, OneMetric(step), [&woken] { ++woken; });
    ASSERT_TRUE(pending.ok()) << pending.status();
    batches.push_back(*pending);
  }
  base::AwaitPatiently(absl::Seconds(20), [&] { return woken == 500; });
  for (size_t i = 0; i < batches.size(); ++i) {
    const std::optional<absl::Status> result = batches[i]->result();
    ASSERT_TRUE(result.has_value()) << i;
    EXPECT_EQ(result->code(), i % 100 == 7 ? absl::StatusCode::kNotFound : absl::StatusCode::kOk);
  }
  EXPECT_EQ(store_->History(run_, "m", std::nullopt, 1000)->size(), 495u);
}

TEST_F(LogQueueTest, WhatComesWhileTheDiskIsWaitedForIsOneTransaction) {
  LogQueue queue(store_.get());
  std::atomic<int> woken = 0;
  const auto add = [&](int64_t step) {
    ASSERT_TRUE(queue.Add(run_, OneMetric(step), [&woken] { ++woken; }).ok());
  };
  int64_t before = 0;
  {
    const Hold hold(this);
    add(0);
    hold.AwaitWriter();
    for (int64_t step = 1; step <= 100; ++step) add(step);
    EXPECT_EQ(woken, 0);
    before = commits_;  // the first has come as far as its first call
  }
  base::AwaitPatiently(absl::Seconds(20), [&] { return woken == 101; });
  EXPECT_EQ(commits_ - before, 3);
  EXPECT_EQ(store_->History(run_, "m", std::nullopt, 1000)->size(), 101u);
}

TEST_F(LogQueueTest, ABatchThatCannotBeWrittenSpoilsNoOther) {
  {
    SQLite::Database other(folder_.path() / "t.db", SQLite::OPEN_READWRITE);
    other.exec(
        "CREATE TRIGGER boom BEFORE INSERT ON tags WHEN NEW.key = 'boom' "
        "BEGIN SELECT RAISE(ABORT, 'boom'); END");
  }
  std::vector<LogRequest> requests(3);
  std::vector<LogRequest*> all;
  for (int64_t i = 0; i < 3; ++i) {
    requests[i] = {.run = run_, .batch = OneMetric(i), .status = {}};
    all.push_back(&requests[i]);
  }
  requests[1].batch.tags = {{"boom", "x"}};
  store_->LogTogether(all);
  EXPECT_TRUE(requests[0].status.ok()) << requests[0].status;
  EXPECT_FALSE(requests[1].status.ok());
  EXPECT_TRUE(requests[2].status.ok()) << requests[2].status;
  EXPECT_EQ(store_->History(run_, "m", std::nullopt, 10)->size(), 2u);
}

TEST_F(LogQueueTest, RefusesAtOnceWhatIsNoBatch) {
  LogQueue queue(store_.get());
  Batch batch = OneMetric(1);
  batch.metrics[0].key = "../x";
  EXPECT_TRUE(absl::IsInvalidArgument(queue.Add(run_, batch, [] {}).status()));
}

TEST_F(LogQueueTest, TakesNoMoreThanItCanHold) {
  LogQueue queue(store_.get());
  const Hold hold(this);
  ASSERT_TRUE(queue.Add(run_, OneMetric(1), [] {}).ok());
  hold.AwaitWriter();
  Batch batch;
  for (size_t i = 0; i < kMostTagsOfBatch; ++i) {
    batch.tags.push_back({absl::StrCat("t", i), std::string(kMostTagLength, 'x')});
  }
  absl::Status refused;
  int taken = 0;
  for (; taken < 200 && refused.ok(); ++taken) {
    refused = queue.Add(run_, batch, [] {}).status();
  }
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_GT(taken, 50);
}

}  // namespace
}  // namespace tutti::tracking
