#include "platform/client/jobs/job_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "platform/client/connection/connection_fake.h"

namespace tutti::client {
namespace {

JobView Pipeline() {
  JobView job;
  job.id = "p";
  job.type = "pipeline";
  ChildView tune{.step = "tune", .type = "sweep", .id = "p.tune", .state = "Failed"};
  tune.children = {
      {.step = "trial-1", .type = "command", .id = "p.tune.trial-1", .state = "Failed"}};
  job.children = {{.step = "train", .type = "command", .id = "p.train", .state = "Completed"},
                  tune,
                  {.step = "never", .type = "command", .state = "NotStarted"}};
  return job;
}

TEST(JobParts, AreTheJobAndAllThatWereStartedBelowIt) {
  std::vector<std::string> texts;
  for (const JobPart& part : PartsOf(Pipeline())) texts.push_back(part.job + "=" + part.folder);
  EXPECT_THAT(texts, testing::ElementsAre("p=", "p.train=steps/train", "p.tune=steps/tune",
                                          "p.tune.trial-1=steps/tune/trials/trial-1"));
}

TEST(JobParts, WhatHasFilesIsAsked) {
  FakeService fake([](const http::ClientRequest& request) -> FakeService::Answer {
    const bool has = absl::StrContains(request.target, "/p.train/");
    return {.chunks = {has ? R"({"files": [{"path": "logs/rank-0.stdout", "bytes": 1}]})"
                           : R"({"files": []})"}};
  });
  ServiceClient service(fake.connect()());
  const KeptFiles kept = KeptFilesOf(service, Pipeline());
  EXPECT_FALSE(kept.outputs || kept.logs);
  EXPECT_TRUE(kept.of_children);
  EXPECT_FALSE(kept.of_failed) << "a trial that left nothing";
  EXPECT_FALSE(kept.of_completed) << "logs alone";
}

TEST(JobParts, TheFirstFailureOfASweepNeedNotBeAmongItsListedTrials) {
  EXPECT_EQ(FailedJob(Pipeline()), "p.tune.trial-1");
  JobView sweep;
  sweep.children = {{.step = "trial-1", .id = "s.trial-1", .state = "Completed"}};
  sweep.trials = {.next = "9"};
  EXPECT_EQ(FailedJob(sweep), "");
  sweep.trials->failed = {{.step = "trial-500", .id = "s.trial-500", .state = "Failed"}};
  EXPECT_EQ(FailedJob(sweep), "s.trial-500");
}

TEST(JobParts, OutputsOfAStepThatCompletedAreKnownWhereAnotherFailed) {
  FakeService fake([](const http::ClientRequest& request) -> FakeService::Answer {
    const bool has = absl::StrContains(request.target, "/p.train/");
    return {.chunks = {has ? R"({"files": [{"path": "outputs/model.pt", "bytes": 1}]})"
                           : R"({"files": [{"path": "logs/rank-0.stderr", "bytes": 1}]})"}};
  });
  ServiceClient service(fake.connect()());
  EXPECT_TRUE(KeptFilesOf(service, Pipeline()).of_completed);
  JobView only_failed = Pipeline();
  only_failed.children[0].state = "Failed";
  EXPECT_FALSE(KeptFilesOf(service, only_failed).of_completed);
}

TEST(JobParts, WhatIsNotAnsweredIsTakenToBeThere) {
  FakeService fake([](const http::ClientRequest&) -> FakeService::Answer {
    return {.status = 500, .chunks = {R"({"error": {"code": "INTERNAL", "message": "no"}})"}};
  });
  ServiceClient service(fake.connect()());
  EXPECT_TRUE(KeptFilesOf(service, Pipeline()).outputs);
}

}  // namespace
}  // namespace tutti::client
