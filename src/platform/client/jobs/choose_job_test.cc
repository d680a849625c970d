#include "platform/client/jobs/choose_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "platform/client/connection/connection_fake.h"

namespace tutti::client {
namespace {

using testing::HasSubstr;

const std::vector<std::string> kIds = {"brave_ant", "brave_ant_2", "calm_bee"};

TEST(JobName, MayBeABeginning) {
  EXPECT_EQ(*ChooseJob("calm", kIds), "calm_bee");
  EXPECT_EQ(*ChooseJob("brave_ant", kIds), "brave_ant");
}

TEST(JobName, SaysWhichOnesItCouldBe) {
  const absl::Status status = ChooseJob("brave", kIds).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("brave_ant, brave_ant_2"));
}

TEST(JobName, SuggestsTheNearest) {
  const absl::Status status = ChooseJob("clam_bee", kIds).status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("did you mean \"calm_bee\"?"));
}

TEST(JobName, AsksTheServiceForTheListOnlyWhenItMust) {
  FakeService fake([](const http::ClientRequest& request) -> FakeService::Answer {
    if (request.target == "/v1/jobs/calm_bee") return {.chunks = {"{}"}};
    if (request.target == "/v1/jobs?limit=1000") {
      return {.chunks = {R"({"jobs": [{"id": "calm_bee"}]})"}};
    }
    if (request.target == "/v1/jobs?limit=1") return {.chunks = {R"({"jobs": [{"id": "new"}]})"}};
    if (request.target == "/v1/jobs/new.train") return {.chunks = {"{}"}};
    return {.status = 404};
  });
  ServiceClient service(fake.connect()());
  EXPECT_EQ(*ResolveJob(service, "calm_bee"), "calm_bee");
  EXPECT_EQ(fake.requests().size(), 1u);
  EXPECT_EQ(*ResolveJob(service, "c"), "calm_bee");
  EXPECT_EQ(*ResolveJob(service, "last"), "new");
  EXPECT_EQ(*ResolveJob(service, "last.train"), "new.train");
  EXPECT_TRUE(absl::IsNotFound(ResolveJob(service, "../nodes").status()));
}

}  // namespace
}  // namespace tutti::client
