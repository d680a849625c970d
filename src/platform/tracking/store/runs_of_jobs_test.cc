// Tests the functions of TrackingStore for the runs of jobs.
// Covers: artifact_uri.cc, runs_of_jobs.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "platform/tracking/store/tracking_store.h"

namespace tutti::tracking {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class JobRunsOfStore : public ::testing::Test {
 protected:
  void Log(const std::string& run, const std::string& key, std::vector<double> values) {
    Batch batch;
    for (const double value : values) {
      batch.metrics.push_back({key, {static_cast<int64_t>(batch.metrics.size()), 1, value}});
    }
    LogRequest request{.run = run, .batch = batch, .status = {}};
    store_->LogTogether({&request});
    EXPECT_TRUE(request.status.ok()) << request.status;
  }
  std::string Other() { return store_->CreateRun({.job_run = "own"})->info.id; }

  absl::Status room_;
  base::TemporaryDirectory folder_;
  base::ManualClock clock_{absl::FromUnixSeconds(1'800'000'000)};
  std::unique_ptr<TrackingStore> store_ = *TrackingStore::Open(
      folder_.path() / "tracking.db", &clock_, {.check_room = [this] { return room_; }});
};

TEST_F(JobRunsOfStore, AreBegunOnceWithTheirExperimentAndRunAgain) {
  const JobRunCreation creation{
      .id = "own", .experiment = "nets", .user = "u", .name = "n", .tags = {{"k", "v"}}};
  const auto run = store_->BeginJobRun(creation);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(store_->GetExperimentByName("nets")->id, run->experiment);
  ASSERT_TRUE(store_->EndJobRun("own", RunStatus::kFailed, 5).ok());
  EXPECT_EQ(store_->GetRunInfo("own")->end, 5);
  const auto again = store_->BeginJobRun(creation);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->sequence, run->sequence);
  EXPECT_EQ(store_->GetRunInfo("own")->status, RunStatus::kRunning);
  EXPECT_EQ(store_->GetRunInfo("own")->end, std::nullopt);
  ASSERT_TRUE(store_->DeleteExperiment(run->experiment).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(store_->BeginJobRun(creation).status()));
}

TEST_F(JobRunsOfStore, ThoseThatTheirJobsHaveNotEndedAreFound) {
  EXPECT_TRUE(store_->EndJobRun("unknown", RunStatus::kFailed, 5).ok());
  ASSERT_TRUE(store_->BeginJobRun({.id = "own", .job = "j", .name = "n"}).ok());
  ASSERT_TRUE(store_->BeginJobRun({.id = "over", .job = "k", .name = "n"}).ok());
  ASSERT_TRUE(store_->UpdateRun("own", {.status = RunStatus::kFinished, .end = 3}).ok());
  ASSERT_TRUE(store_->EndJobRun("over", RunStatus::kFinished, 5).ok());
  Other();
  ASSERT_TRUE(store_->CreateRun({.user = "u"}).ok());
  const auto open = store_->UnsettledRuns();
  ASSERT_TRUE(open.ok()) << open.status();
  ASSERT_EQ(open->size(), 1u);
  EXPECT_EQ(open->front().id, "own") << "also if a client says that it is over";
  EXPECT_EQ(open->front().job, "j");
}

TEST_F(JobRunsOfStore, AMetricIsThatOfTheOwnRunElseOfTheFirstThatHasIt) {
  ASSERT_TRUE(store_->BeginJobRun({.id = "own", .name = "n"}).ok());
  EXPECT_THAT(store_->MetricOfJob("own", "loss")->values, IsEmpty());
  EXPECT_EQ(store_->GetJobRun("own")->info.id, "own");
  const std::string first = Other(), second = Other();
  Log(second, "loss", {3});
  Log(first, "loss", {2, 1});
  Log(first, "top1", {0.5});
  EXPECT_THAT(store_->MetricOfJob("own", "loss")->values, ElementsAre(2, 1));
  const auto shown = store_->GetJobRun("own");
  ASSERT_TRUE(shown.ok()) << shown.status();
  EXPECT_EQ(shown->info.id, "own");
  ASSERT_EQ(shown->metrics.size(), 2u) << "those of the first that has any";
  EXPECT_EQ(shown->metrics[0].point.value, 1);
  Log("own", "other", {7});
  EXPECT_THAT(store_->MetricOfJob("own", "loss")->values, ElementsAre(2, 1));
  EXPECT_THAT(store_->MetricOfJob("own", "absent")->other_names,
              ElementsAre("other", "loss", "top1", "loss"));
  Log("own", "loss", {4});
  EXPECT_THAT(store_->MetricOfJob("own", "loss")->values, ElementsAre(4));
}

TEST_F(JobRunsOfStore, WhatAClientSaysAfterTheJobsEndChangesNone) {
  ASSERT_TRUE(store_->BeginJobRun({.id = "own", .job = "j", .name = "n"}).ok());
  const std::string other = Other();
  ASSERT_TRUE(store_->EndJobRun("own", RunStatus::kKilled, 5).ok());
  for (const std::string& run : {std::string("own"), other}) {
    const auto said =
        store_->UpdateRun(run, {.status = RunStatus::kRunning, .end = 9, .by_job = true});
    ASSERT_TRUE(said.ok()) << said.status();
    EXPECT_EQ(store_->GetRunInfo(run)->status, RunStatus::kKilled);
    EXPECT_EQ(store_->GetRunInfo(run)->end, 5);
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(store_->CreateRun({.job_run = "own"}).status()));
  ASSERT_TRUE(store_->BeginJobRun({.id = "own", .job = "j", .name = "n"}).ok());
  EXPECT_TRUE(store_->CreateRun({.job_run = "own"}).ok()) << "of its next attempt";
}

TEST_F(JobRunsOfStore, ANodeMoreOfAJobWritesNothing) {
  ASSERT_TRUE(store_->BeginJobRun({.id = "own", .job = "j", .name = "n"}).ok());
  room_ = absl::ResourceExhaustedError("full");
  EXPECT_TRUE(store_->BeginJobRun({.id = "own", .job = "j", .name = "n"}).ok());
  EXPECT_FALSE(store_->BeginJobRun({.id = "next", .job = "k", .name = "n"}).ok());
}

}  // namespace
}  // namespace tutti::tracking
