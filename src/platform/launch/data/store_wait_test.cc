#include "platform/launch/data/store_wait.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/test_patience.h"
#include "base/threads/retry_after.h"
#include "platform/storage/storage_fault.h"

namespace tutti::launch {
namespace {

using storage::StorageProgress;
using storage::StorageRequest;
using storage::StorageResult;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Runs requests by a program that is played, on a clock that goes on by `per_run` with each run.
class StoreWaitTest : public ::testing::Test {
 protected:
  using Progress = std::function<void(const StorageProgress&)>;

  WaitParts Parts() {
    WaitParts parts{.job = "calm-fox"};
    parts.held = [this](const std::string& line) { held_.push_back(line); };
    parts.log = [this](const std::string& line) { log_.push_back(line); };
    parts.patience = {.first_pause = absl::Milliseconds(1),
                      .longest_pause = absl::Milliseconds(1),
                      .limit = absl::Hours(24)};
    parts.now = [this] { return absl::FromUnixSeconds(1764205200) + clock_; };
    parts.steady = [this] { return clock_; };
    return parts;
  }

  absl::StatusOr<StorageResult> Run() {
    const StorageFunction waiting = WaitingStorage(
        "input \"data\"",
        [this](const StorageRequest& request, base::Deadline deadline, const std::atomic<bool>&,
               const Progress& progress, int lock) {
          EXPECT_TRUE(request.tells_retry_after);
          EXPECT_GT(deadline.Remaining(), absl::Minutes(59)) << "each run has its own time";
          EXPECT_EQ(lock, 7);
          clock_ += per_run_;
          ++runs_;
          return play_(progress);
        },
        Parts());
    return waiting({}, base::Deadline::After(absl::Hours(1)), cancelled_, {}, /*lock=*/7);
  }
  static absl::Status Away(const std::string& why = "the store cannot be reached") {
    return storage::WithSource(absl::UnavailableError(absl::StrCat("bucket \"sets\": ", why)),
                               storage::FaultSource::kStore);
  }

  std::function<absl::StatusOr<StorageResult>(const Progress&)> play_;
  absl::Duration per_run_ = absl::Minutes(1), clock_ = absl::Seconds(5);
  std::vector<std::string> held_, log_;
  std::atomic<bool> cancelled_ = false;
  int runs_ = 0;
};

TEST_F(StoreWaitTest, AStoreThatIsBackIsAskedAgainAndBothAreSaidOnce) {
  play_ = [this](const Progress&) -> absl::StatusOr<StorageResult> {
    if (runs_ < 4) return Away();
    return StorageResult{.bytes = 3};
  };
  const auto result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->bytes, 3);
  ASSERT_EQ(held_.size(), 2u);
  EXPECT_EQ(held_[0],
            "input \"data\": bucket \"sets\": the store cannot be reached; the job waits for the "
            "store since 2025-11-27T01:01:05Z, until 2025-11-28T01:01:05Z at most, and then goes "
            "on where it was; tutti job cancel calm-fox ends it");
  EXPECT_EQ(held_[1], "");
  EXPECT_THAT(log_, ElementsAre(held_[0],
                                "input \"data\": its store answers again after 3m; the "
                                "fetch goes on where it was"));
}

TEST_F(StoreWaitTest, IsAsLongAsTheStoreAsksFor) {
  play_ = [this](const Progress&) -> absl::StatusOr<StorageResult> {
    if (runs_ == 2) return StorageResult{};
    return base::WithRetryAfter(Away("the store is too busy"), absl::Milliseconds(200));
  };
  const absl::Duration began = base::SteadyNow();
  EXPECT_TRUE(Run().ok());
  EXPECT_GE(base::SteadyNow() - began, absl::Milliseconds(200));
}

TEST_F(StoreWaitTest, AStoreThatStaysAwayIsGivenUpAfterTheLimitAndNotBefore) {
  per_run_ = absl::Hours(1);
  play_ = [](const Progress&) { return Away(); };
  const absl::Status status = Run().status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(status.message(),
            "bucket \"sets\": the store cannot be reached; the job has waited for it for 24h");
  EXPECT_EQ(runs_, 25) << "the first failure, and 24 hours";
  EXPECT_EQ(held_.back(), "");
  EXPECT_EQ(log_.size(), 1u) << "it does not answer again";
}

TEST_F(StoreWaitTest, TheLimitCountsFromTheLastBytesThatCame) {
  per_run_ = absl::Hours(10);
  play_ = [this](const Progress& progress) -> absl::StatusOr<StorageResult> {
    progress({.bytes = 0});
    progress({.bytes = std::min(runs_, 6) * 100});
    if (runs_ < 6) return Away();
    return StorageResult{};
  };
  EXPECT_TRUE(Run().ok()) << "50 hours, of which each ten bring something";
  runs_ = 0;
  play_ = [](const Progress& progress) -> absl::StatusOr<StorageResult> {
    progress({.bytes = 100});  // those that were there already
    return Away();
  };
  EXPECT_TRUE(absl::IsUnavailable(Run().status()));
  EXPECT_EQ(runs_, 4);
}

TEST_F(StoreWaitTest, TheLimitOfAnInputByHttpCountsFromTheLastBytesToo) {
  per_run_ = absl::Hours(20);
  int runs = 0;
  const auto fetch = [&](const std::vector<int64_t>& come) {
    runs = 0;
    return FetchWaiting(
        "input \"data\"",
        [&](const std::function<void(int64_t)>& progress) -> absl::StatusOr<FetchedInput> {
          clock_ += per_run_;
          if (runs < static_cast<int>(come.size())) progress(come[runs]);
          if (++runs == 6) return FetchedInput{"/data/file", {}};
          return runs % 2 == 0 ? absl::UnavailableError("cut off")
                               : absl::DeadlineExceededError("nothing came");
        },
        Parts(), cancelled_);
  };
  const auto fetched = fetch({1, 2, 3, 4, 5});
  ASSERT_TRUE(fetched.ok()) << fetched.status();
  EXPECT_EQ(fetched->path, "/data/file");
  EXPECT_FALSE(fetch({5, 5, 5, 5, 5}).ok()) << "the same bytes again";
  EXPECT_EQ(runs, 3) << "after a day";
  EXPECT_FALSE(fetch({}).ok());
}

TEST_F(StoreWaitTest, WhatLastsEndsItAtOnce) {
  for (const absl::Status& lasting :
       {absl::PermissionDeniedError("the credentials have expired: make new ones"),
        absl::NotFoundError("nothing is at this path"), absl::AbortedError("it has changed"),
        absl::DataLossError("damaged"), absl::ResourceExhaustedError("the disk is full"),
        absl::DeadlineExceededError("tutti-storage took too long"),
        storage::WithSource(absl::UnavailableError("the file system refuses"),
                            storage::FaultSource::kDisk)}) {
    runs_ = 0;
    play_ = [&](const Progress&) { return lasting; };
    EXPECT_EQ(Run().status(), lasting);
    EXPECT_EQ(runs_, 1);
  }
  EXPECT_THAT(held_, IsEmpty());
  EXPECT_THAT(log_, IsEmpty());
}

TEST_F(StoreWaitTest, AFailureThatBecomesALastingOneEndsTheWait) {
  play_ = [this](const Progress&) -> absl::StatusOr<StorageResult> {
    if (runs_ < 3) return Away();
    return absl::PermissionDeniedError("the credentials have expired");
  };
  EXPECT_TRUE(absl::IsPermissionDenied(Run().status()));
  ASSERT_EQ(held_.size(), 2u);
  EXPECT_EQ(held_[1], "");
  EXPECT_EQ(log_.size(), 1u);
}

TEST_F(StoreWaitTest, AnotherFailureIsSaidEachTenMinutesAtMost) {
  per_run_ = absl::Minutes(4);
  play_ = [this](const Progress&) -> absl::StatusOr<StorageResult> {
    if (runs_ == 7) return StorageResult{};
    return Away(absl::StrCat("failure ", runs_));
  };
  EXPECT_TRUE(Run().ok());
  ASSERT_EQ(held_.size(), 3u);
  EXPECT_THAT(held_[0], HasSubstr("failure 1; "));
  EXPECT_THAT(held_[1], HasSubstr("failure 4; the job waits for the store since 2025-11-27T01:04"));
  EXPECT_EQ(held_[2], "");
  EXPECT_EQ(log_.size(), 2u) << "the log has the first one, and that it answers again";
}

TEST_F(StoreWaitTest, ACancelEndsTheWait) {
  play_ = [](const Progress&) { return Away(); };
  WaitParts parts{.job = "calm-fox"};
  std::atomic<bool> waits = false;
  parts.held = [&](const std::string& line) { waits = !line.empty(); };
  parts.log = [](const std::string&) {};
  parts.patience.first_pause = absl::Hours(1);
  parts.patience.longest_pause = absl::Hours(1);
  StoreWait wait("input \"data\"", parts, cancelled_);
  absl::Status ended;
  std::thread thread([&] { ended = wait.Await(Away()); });
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] { return waits.load(); }));
  cancelled_ = true;
  thread.join();
  EXPECT_TRUE(absl::IsCancelled(ended)) << ended;
}

}  // namespace
}  // namespace tutti::launch
