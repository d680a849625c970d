#include "platform/client/jobs/whole_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "platform/client/connection/connection_fake.h"
#include "platform/client/connection/views.h"

namespace tutti::client {
namespace {

using ::testing::ElementsAre;

class WholeJobTest : public ::testing::Test {
 protected:
  absl::StatusOr<JobView> Whole(const std::string& id) {
    FakeService fake([this](const http::ClientRequest& request) -> FakeService::Answer {
      const auto found = answers_.find(request.target);
      if (found == answers_.end()) return {.status = 404, .chunks = {"{}"}};
      return {.chunks = {found->second}};
    });
    ServiceClient service(fake.connect()());
    const auto text = WholeJob(service, id);
    return text.ok() ? Parse<JobView>(*text) : text.status();
  }
  std::map<std::string, std::string> answers_;
};

TEST_F(WholeJobTest, HasTheTrialsOfAllSweepsAndAllEvents) {
  answers_["/v1/jobs/p"] = R"({"id": "p", "type": "pipeline", "trials": null,
    "events": [{"sequence": 7, "state": "Running"}], "events_before": 7, "children": [
      {"step": "tune", "type": "sweep", "id": "p.tune", "children": [{"step": "trial-1"}],
       "trials": {"count": 3, "states": {}, "best": [], "failed": [], "next": "11"}}]})";
  answers_["/v1/jobs/p.tune/trials?limit=1000&after=11"] =
      R"({"trials": [{"step": "trial-2"}], "next": "12"})";
  answers_["/v1/jobs/p.tune/trials?limit=1000&after=12"] =
      R"({"trials": [{"step": "trial-3"}], "next": null})";
  answers_["/v1/jobs/p/events?limit=1000&before=7"] =
      R"({"events": [{"sequence": 5, "state": "Preparing"}], "before": 5})";
  answers_["/v1/jobs/p/events?limit=1000&before=5"] =
      R"({"events": [{"sequence": 1, "state": "Queued"}], "before": null})";
  const auto job = Whole("p");
  ASSERT_TRUE(job.ok()) << job.status();
  std::vector<std::string> steps, states;
  for (const ChildView& trial : job->children.at(0).children) steps.push_back(trial.step);
  for (const EventView& event : job->events) states.push_back(event.state);
  EXPECT_THAT(steps, ElementsAre("trial-1", "trial-2", "trial-3"));
  EXPECT_THAT(states, ElementsAre("Queued", "Preparing", "Running"));
  EXPECT_EQ(job->children[0].trials->next, "");
  EXPECT_FALSE(job->events_before);
}

TEST_F(WholeJobTest, APageThatDoesNotComeIsAnError) {
  answers_["/v1/jobs/s"] = R"({"id": "s", "children": [], "trials": {"next": "5"}})";
  EXPECT_FALSE(Whole("s").ok());
  answers_["/v1/jobs/s/trials?limit=1000&after=5"] = R"({"trials": [], "next": "5"})";
  EXPECT_EQ(Whole("s").status().code(), absl::StatusCode::kInternal) << "not for ever";
}

TEST_F(WholeJobTest, OfAnEarlierServiceIsAsItCame) {
  answers_["/v1/jobs/j"] = R"({"id": "j", "events": [{"state": "Queued"}], "children": []})";
  const auto job = Whole("j");
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->events.size(), 1u);
}

}  // namespace
}  // namespace tutti::client
