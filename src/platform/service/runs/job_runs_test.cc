// Runs of jobs in MLflow's tracking, of a service that has it.
// Covers: metrics_to_run.cc, platform/service/flow/trial_metrics.cc.
#include "platform/service/runs/job_runs.h"

#include <gmock/gmock.h>

#include <limits>

#include "base/test_patience.h"
#include "platform/service/attempt/launcher_token.h"
#include "platform/service/world_for_tests.h"

namespace tutti::service {
namespace {

using store::JobState;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;
using tracking::RunStatus;

class JobRunsTest : public ServiceTest {
 protected:
  void SetUp() override {
    tracking::TrackingStoreOptions with;
    with.check_room = [this] {
      if (meanwhile_) std::exchange(meanwhile_, nullptr)();
      return room_;
    };
    auto store = tracking::TrackingStore::Open(folder_.path() / "tracking.db", &world_.clock(),
                                               std::move(with));
    ASSERT_TRUE(store.ok()) << store.status();
    tracking_ = *std::move(store);
    world_.OpenWithTracking(tracking_.get());
  }
  // The run of job j, which has its nodes.
  JobRun Begun(const std::string& allocation = "j.1") {
    absl::StatusOr<JobRun> run;
    EXPECT_TRUE(world_.StepUntil([&] {
      run = service().BeginRun(allocation, 0);
      return run.ok();
    })) << run.status();
    return run.value_or(JobRun());
  }
  RunStatus StatusOf(const std::string& run) {
    const auto info = tracking_->GetRunInfo(run);
    EXPECT_TRUE(info.ok()) << info.status();
    return info.ok() ? info->status : RunStatus::kScheduled;
  }
  void Log(const std::string& run, const std::string& key, double value) {
    tracking::LogRequest request{
        .run = run,
        .batch = {.metrics = {{key, {0, 1, value}}}, .params = {}, .tags = {}},
        .status = {}};
    tracking_->LogTogether({&request});
    EXPECT_TRUE(request.status.ok()) << request.status;
  }

  absl::Status room_;
  std::function<void()> meanwhile_;  // is called once, while the next write begins
  std::unique_ptr<tracking::TrackingStore> tracking_;
};

TEST_F(JobRunsTest, TheRunIsThereBeforeTheJobBeginsAndSaysWhoseItIs) {
  ASSERT_TRUE(
      world_.Submit(absl::StrCat(kJobFile, "display_name: first try\nexperiment_name: nets\n"))
          .ok());
  const JobRun run = Begun();
  EXPECT_EQ(run.experiment, "nets");
  EXPECT_EQ(RunOfToken("key-0123456789abcdef", run.token), run.id);
  const auto whole = tracking_->GetRun(run.id);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(whole->info.name, "first try");
  EXPECT_EQ(whole->info.status, RunStatus::kRunning);
  EXPECT_THAT(whole->tags, Contains(tracking::KeyValue{"tutti.job", "j"}));
  EXPECT_THAT(whole->tags, Contains(tracking::KeyValue{"mlflow.source.name", "echo hi"}));
  EXPECT_EQ(service().BeginRun("j.1", 1)->id, run.id) << "all nodes have the same";
  const auto shown = service().RunOf(service().GetJob("j")->record.job);
  ASSERT_TRUE(shown.ok() && shown->has_value());
  EXPECT_EQ((*shown)->info.id, run.id);
}

TEST_F(JobRunsTest, EndsAsItsJobDoesAndNotAsAClientSays) {
  ASSERT_TRUE(world_.Submit().ok());
  const JobRun run = Begun();
  const auto nested = tracking_->CreateRun({.job_run = run.id});
  const auto ended = tracking_->CreateRun({.job_run = run.id});
  for (const std::string& id : {run.id, ended->info.id}) {
    ASSERT_TRUE(
        tracking_->UpdateRun(id, {.status = RunStatus::kFailed, .end = 7, .name = ""}).ok());
  }
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_EQ(StatusOf(run.id), RunStatus::kFinished);
  EXPECT_EQ(StatusOf(nested->info.id), RunStatus::kFinished);
  EXPECT_EQ(StatusOf(ended->info.id), RunStatus::kFailed) << "it was over";
  EXPECT_EQ(tracking_->GetRunInfo(run.id)->end,
            absl::ToUnixMillis(*service().GetJob("j")->record.ended()));
}

TEST_F(JobRunsTest, AFailedJobsRunHasFailed) {
  world_.launchers().script() = {{0, {{"code", 3}}}, {1, {}}};
  ASSERT_TRUE(world_.Submit().ok());
  const JobRun run = Begun();
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_EQ(world_.State("j"), JobState::kFailed);
  EXPECT_EQ(StatusOf(run.id), RunStatus::kFailed);
}

TEST_F(JobRunsTest, AnAttemptThatBeginsAgainHasItsRunRunAgain) {
  world_.launchers().script() = {{0, nullptr}, {1, nullptr}};
  ASSERT_TRUE(world_.Submit(absl::StrCat(kJobFile, "retry_settings: {max_retries: 1}\n")).ok());
  const JobRun run = Begun();
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kRunning));
  ASSERT_TRUE(tracking_->UpdateRun(run.id, {.status = RunStatus::kFinished, .end = 7}).ok());
  world_.launchers().Kill("j.1", 1);
  world_.launchers().script().clear();
  EXPECT_EQ(Begun("j.1-2").id, run.id);
  EXPECT_EQ(StatusOf(run.id), RunStatus::kRunning);
}

TEST_F(JobRunsTest, ACanceledJobsRunIsKilled) {
  ASSERT_TRUE(world_.Submit().ok());
  const JobRun run = Begun();
  ASSERT_TRUE(service().Cancel("j").ok());
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_EQ(StatusOf(run.id), RunStatus::kKilled);
}

TEST_F(JobRunsTest, ItsTokenOpensItUntilSomeMinutesAfterTheEnd) {
  EXPECT_FALSE(service().MayTrack("unknown"));
  ASSERT_TRUE(world_.Submit().ok());
  const JobRun run = Begun();
  EXPECT_TRUE(service().MayTrack(run.id));
  world_.Open();
  EXPECT_TRUE(service().MayTrack(run.id)) << "the next service knows it";
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_TRUE(service().MayTrack(run.id)) << "what is on its way arrives";
  world_.clock().Advance(kTracksOn);
  EXPECT_FALSE(service().MayTrack(run.id));
}

TEST_F(JobRunsTest, WhatCannotBeWrittenAtTheEndIsWrittenLater) {
  ASSERT_TRUE(world_.Submit().ok());
  const JobRun run = Begun();
  room_ = absl::ResourceExhaustedError("the disk is full");
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_EQ(StatusOf(run.id), RunStatus::kRunning);
  room_ = absl::OkStatus();
  world_.clock().Advance(absl::Minutes(1));
  world_.Step();
  EXPECT_EQ(StatusOf(run.id), RunStatus::kFinished);
}

TEST_F(JobRunsTest, TheNextServiceEndsWhatThisOneCouldNot) {
  ASSERT_TRUE(world_.Submit().ok());
  const JobRun run = Begun();
  const auto other =
      tracking_->BeginJobRun({.id = "of-a-job-that-was-deleted", .job = "gone", .name = "n"});
  ASSERT_TRUE(other.ok()) << other.status();
  // As the end of a block of "with start_run()" does.
  ASSERT_TRUE(tracking_->UpdateRun(run.id, {.status = RunStatus::kFailed, .end = 7}).ok());
  const auto nested = tracking_->CreateRun({.job_run = run.id});
  room_ = absl::ResourceExhaustedError("the disk is full");
  ASSERT_TRUE(world_.StepUntilOver("j"));
  room_ = absl::OkStatus();
  world_.Open();
  service().Run();
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(10), [&] {
    return StatusOf(run.id) == RunStatus::kFinished && StatusOf(other->id) == RunStatus::kKilled;
  }));
  EXPECT_EQ(StatusOf(nested->info.id), RunStatus::kFinished);
  service().Stop();
}

TEST_F(JobRunsTest, TheNextServiceEndsNoRunOfAJobThatGoesOnWhateverItsTagsSay) {
  ASSERT_TRUE(world_.Submit().ok());
  const JobRun run = Begun();
  tracking::LogRequest request{.run = run.id,
                               .batch = {.metrics = {}, .params = {}, .tags = {{"tutti.job", "x"}}},
                               .status = {}};
  tracking_->LogTogether({&request});
  const auto past =
      tracking_->BeginJobRun({.id = "of-a-job-that-was-deleted", .job = "gone", .name = "n"});
  ASSERT_TRUE(past.ok()) << past.status();
  world_.Open();
  service().Run();
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(10),
                                   [&] { return StatusOf(past->id) == RunStatus::kKilled; }));
  service().Stop();
  EXPECT_EQ(StatusOf(run.id), RunStatus::kRunning);
}

TEST_F(JobRunsTest, ARunThatIsBegunWhileItsJobEndsEndsWithIt) {
  ASSERT_TRUE(world_.Submit().ok());
  const JobRun run = Begun();
  ASSERT_TRUE(tracking_->EndJobRun(run.id, RunStatus::kFailed, 5).ok());  // so that it is written
  meanwhile_ = [&] {
    ASSERT_TRUE(service().Cancel("j").ok());
    ASSERT_TRUE(world_.StepUntilOver("j"));
  };
  const auto late = service().BeginRun("j.1", 0);
  EXPECT_TRUE(absl::IsAborted(late.status())) << late.status();
  world_.clock().Advance(kTracksOn);
  world_.Step();
  EXPECT_EQ(StatusOf(run.id), RunStatus::kKilled);
  EXPECT_FALSE(service().MayTrack(run.id));
}

TEST_F(JobRunsTest, ALauncherIsToldAtOnceThatItCannotBeMade) {
  ASSERT_TRUE(world_.Submit().ok());
  room_ = absl::ResourceExhaustedError("the disk is full");
  absl::StatusOr<JobRun> run;
  world_.StepUntil([&] {
    run = service().BeginRun("j.1", 0);
    return absl::IsFailedPrecondition(run.status());
  });
  EXPECT_TRUE(absl::IsFailedPrecondition(run.status())) << run.status();
  EXPECT_THAT(std::string(run.status().message()), HasSubstr("the disk is full"));
}

TEST_F(JobRunsTest, AnotherJobOfThatNameHasAnotherRun) {
  ASSERT_TRUE(world_.Submit().ok());
  const JobRun run = Begun();
  ASSERT_TRUE(world_.StepUntilOver("j"));
  ASSERT_TRUE(service().Delete("j").ok());
  ASSERT_TRUE(world_.Submit().ok());
  EXPECT_NE(Begun("j.2").id, run.id);
}

TEST_F(JobRunsTest, ATrialsMetricIsReadFromItsRun) {
  ASSERT_TRUE(world_
                  .Submit("type: sweep\nname: s\ntrial: {command: 'echo ${{search_space.x}}'}\n"
                          "sampling_algorithm: grid\n"
                          "search_space:\n  x: {type: choice, values: [1]}\n"
                          "objective: {goal: minimize, primary_metric: loss}\n")
                  .ok());
  const JobRun run = Begun("s.trial-1.2");
  Log(run.id, "loss", 0.5);
  Log(run.id, "loss", -std::numeric_limits<double>::infinity());
  ASSERT_TRUE(world_.StepUntil([&] { return IsEnd(world_.State("s")); }));
  EXPECT_EQ(world_.Reason("s"), "best trial-1 with loss 0.5; 1 of 1 trial completed");
}

TEST_F(JobRunsTest, WhatTuttiTrainReportsIsLoggedToTheRunWhileTheJobGoesOn) {
  ASSERT_TRUE(world_.Submit().ok());
  const JobRun run = Begun();
  const std::string begin =
      "{\"loss\": 9, \"step\": 0}\n"  // of a program before it
      "{\"event\": \"start\", \"time\": 1, \"recipe\": {\"lr\": \"0.1\"}}\n"
      "{\"event\": \"step\", \"time\": 2, \"step\": 3, \"loss\": 0.5}\n";
  const std::string end =
      "{\"event\": \"evaluation\", \"time\": 3, \"step\": 3, \"top1\": 0.25}\n"
      "{\"event\": \"step\", \"time\": 4, \"step\": 4, \"loss\": NaN}";
  const auto report = [&](uint64_t offset, const std::string& text) {
    EXPECT_TRUE(service().AppendOutput("j.1", 0, 0, LogStream::kMetrics, offset, text).ok());
  };
  const auto losses = [&] { return tracking_->History(run.id, "loss", {}, 10).value(); };
  report(0, begin);
  ASSERT_TRUE(world_.StepUntil([&] {
    world_.clock().Advance(absl::Seconds(5));
    return !losses().empty();
  }));
  EXPECT_EQ(losses().size(), 1u);
  EXPECT_EQ(losses()[0].step, 3);
  EXPECT_EQ(losses()[0].value, 0.5);
  world_.Open();  // which reads the file from its beginning
  report(begin.size(), end);
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_EQ(losses().size(), 2u);
  const auto whole = tracking_->GetRun(run.id);
  EXPECT_EQ(whole->info.status, RunStatus::kFinished);
  EXPECT_THAT(whole->params, Contains(tracking::KeyValue{"lr", "0.1"}));
  EXPECT_EQ(tracking_->History(run.id, "evaluation/top1", {}, 10)->size(), 1u);
  const auto shown = service().MetricsOf(service().GetJob("j")->record.job, {.metric = "loss"});
  ASSERT_TRUE(shown.ok()) << shown.status();
  EXPECT_EQ(shown->size(), 1u) << "once, of its file";
}

TEST_F(JobRunsTest, OfWhatTuttiTrainReportsOnlyWhatMlflowRefusesIsLeftOut) {
  ASSERT_TRUE(world_.Submit().ok());
  const JobRun run = Begun();
  const std::string text =
      "{\"event\": \"start\", \"recipe\": {\"lr\": \"0.1\", \"bad(name)\": \"1\"}}\n"
      "{\"event\": \"step\", \"step\": 1, \"loss\": 3}\n"
      // The training is begun again with another rate.
      "{\"event\": \"start\", \"recipe\": {\"lr\": \"0.2\", \"seed\": \"7\"}}\n"
      "{\"event\": \"step\", \"step\": 2, \"bad(name)\": 9, \"loss\": 2}\n"
      "{\"event\": \"step\", \"step\": 3, \"loss\": 1}\n";
  EXPECT_TRUE(service().AppendOutput("j.1", 0, 0, LogStream::kMetrics, 0, text).ok());
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_EQ(tracking_->History(run.id, "loss", {}, 10)->size(), 3u);
  EXPECT_THAT(
      tracking_->GetRun(run.id)->params,
      UnorderedElementsAre(tracking::KeyValue{"lr", "0.1"}, tracking::KeyValue{"seed", "7"}));
}

TEST_F(JobRunsTest, WithoutTrackingNoJobHasARun) {
  world_.OpenWithTracking(nullptr);
  ASSERT_TRUE(world_.Submit().ok());
  absl::StatusOr<JobRun> run;
  world_.StepUntil([&] {
    run = service().BeginRun("j.1", 0);
    return absl::IsNotFound(run.status());
  });
  EXPECT_THAT(std::string(run.status().message()), HasSubstr("no MLflow tracking"));
  EXPECT_FALSE(service().RunOf(service().GetJob("j")->record.job)->has_value());
}

}  // namespace
}  // namespace tutti::service
