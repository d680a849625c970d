#include "platform/client/results/results_so_far.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "platform/client/connection/connection_fake.h"

namespace tutti::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class ResultsSoFarTest : public ::testing::Test {
 protected:
  std::string Ask(const JobView& job, FakeService::Answer answer, const std::string& name = "") {
    FakeService fake([&](const http::ClientRequest&) { return answer; });
    ServiceClient service(fake.connect()());
    std::string text = AskForResultsSoFar(service, job, name, absl::Seconds(7));
    requests_ = fake.requests();
    return text;
  }
  static JobView In(const std::string& state, const std::string& type = "command") {
    JobView job;
    job.id = "j";
    job.type = type;
    job.state = state;
    return job;
  }
  static JobView Running() { return In("Running"); }

  std::vector<std::string> requests_;
};

TEST_F(ResultsSoFarTest, AreThoseOfThatTime) {
  EXPECT_THAT(
      Ask(Running(), {.chunks = {R"({"job": "j", "nodes": [{"node": "n1"}], "missing": []})"}}),
      MatchesRegex("job j still runs: this is what it had at [0-9:]{8}"));
  EXPECT_THAT(requests_, ElementsAre("POST /v1/jobs/j/results?wait=7"));
}

TEST_F(ResultsSoFarTest, NameTheNodesThatDidNotAnswer) {
  const FakeService::Answer answer{
      .chunks = {R"({"missing": [{"node": "n2", "why": "it is\n away"}, 7, {"node": "n3"}]})"}};
  const std::string text = Ask(Running(), answer, "tfevents");
  EXPECT_THAT(text, HasSubstr("; node n2: it is"));
  EXPECT_THAT(text, HasSubstr("; node n3: "));
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_THAT(requests_, ElementsAre("POST /v1/jobs/j/results?wait=7&name=tfevents"));
}

TEST_F(ResultsSoFarTest, AreNotAskedForOfAJobThatDoesNotRun) {
  EXPECT_EQ(Ask(In("Completed"), {}), "");
  EXPECT_EQ(Ask(In("Running", "sweep"), {}), "");
  EXPECT_THAT(requests_, ElementsAre());
}

TEST_F(ResultsSoFarTest, ComeAtTheEndIfTheServiceKnowsNoSuchCall) {
  const FakeService::Answer unknown{
      .status = 404, .chunks = {R"({"error": {"code": "not_found", "message": "no such call"}})"}};
  EXPECT_THAT(Ask(Running(), unknown),
              HasSubstr("job j still runs, and its results come when it ends: no such call"));
  const FakeService::Answer ended{
      .status = 409,
      .chunks = {R"({"error": {"code": "failed_precondition", "message": "it has ended"}})"}};
  EXPECT_EQ(Ask(Running(), ended), "");
  EXPECT_THAT(Ask(Running(), {.chunks = {"["}}), HasSubstr("is not known"));
}

}  // namespace
}  // namespace tutti::client
