// Covers: live_view_json.cc.
#include "platform/client/top/live_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "platform/client/connection/connection_fake.h"
#include "platform/client/top/live_view_json.h"

namespace tutti::client {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

json NodeAnswer(const std::string& name, std::vector<std::string> jobs) {
  return {{"name", name},
          {"compute", "local"},
          {"state", jobs.empty() ? "idle" : "running"},
          {"jobs", jobs},
          {"cores", {0, 1}},
          {"memory_bytes", 8000000000},
          {"gpus", json::array()},
          {"used", {{"cores", 1}, {"memory_bytes", 1000}, {"gpus", 0}}}};
}

json JobAnswer(const std::string& id, const std::string& state, int sequence = 1) {
  return {{"id", id}, {"state", state}, {"node_count", 1}, {"sequence", sequence}};
}

json SeriesAnswer(double cpu) {
  return {{"cpu", {cpu}},         {"memory", {cpu * 1e9}},   {"net_send", {7}},
          {"gpu_use", {cpu / 2}}, {"gpu_memory", {3e9}},     {"gpu_memory_total", {8e10}},
          {"gpu_power", {300}},   {"gpu_temperature", {61}}, {"ranks", json::array()}};
}

// Returns the usage of a job with one node.
json UsageAnswer(const std::string& node, double cpu, double age = 1) {
  const json rank = {{"rank", 0}, {"cpu", {cpu / 2}}};
  json recent = SeriesAnswer(cpu), whole = SeriesAnswer(cpu);
  recent["ranks"] = whole["ranks"] = json::array({rank});
  return {
      {"live", true},
      {"problems", json::array()},
      {"nodes",
       json::array(
           {{{"node", 0}, {"name", node}, {"age", age}, {"recent", recent}, {"whole", whole}}})}};
}

// Answers of a service, by the beginning of what is asked; the longest that fits counts.
class LiveViewTest : public ::testing::Test {
 protected:
  LiveViewTest() {
    answers_["/v1/nodes"] = {{"nodes", json::array()}, {"warnings", json::array()}};
    answers_["/v1/job-summaries?limit=200&state=Queued"] = {{"jobs", json::array()}};
    answers_["/v1/job-summaries?limit=1000"] = {{"jobs", json::array()}};
  }

  FakeService::Answer AnswerTo(const std::string& target) {
    if (!away_.empty() && absl::StrContains(target, away_)) {
      return {.then = absl::UnavailableError("gone"), .reached = false};
    }
    const std::string* best = nullptr;
    for (const auto& [beginning, answer] : answers_) {
      if (absl::StartsWith(target, beginning) &&
          (best == nullptr || beginning.size() > best->size()))
        best = &beginning;
    }
    if (best == nullptr) return {.status = 404, .chunks = {R"({"error": {"message": "none"}})"}};
    return {.chunks = {answers_[*best].dump()}};
  }

  absl::StatusOr<LiveView> AskAll(const LiveView& before = {}) {
    ServiceClient service(fake_.connect()());
    return AskForAll(service, before);
  }

  std::map<std::string, json> answers_;
  std::string away_;  // what has this in its address is not reached
  FakeService fake_{
      [this](const http::ClientRequest& request) { return AnswerTo(request.target); }};
};

std::vector<std::string> IdsIn(const LiveView& view) {
  std::vector<std::string> ids;
  for (const JobView& job : view.jobs) ids.push_back(job.id);
  return ids;
}

TEST_F(LiveViewTest, HasNodesJobsAndWhatThoseUseThatRun) {
  answers_["/v1/nodes"]["nodes"] = {NodeAnswer("n1", {"a", "b"}), NodeAnswer("n2", {})};
  answers_["/v1/job-summaries?limit=1000"]["jobs"] = {
      JobAnswer("a", "Running"), JobAnswer("b", "Running"), JobAnswer("p", "Preparing")};
  answers_["/v1/job-summaries?limit=200&state=Queued"]["jobs"] = {JobAnswer("q", "Queued")};
  answers_["/v1/jobs/a/usage"] = UsageAnswer("n1", 1.5);
  answers_["/v1/jobs/b/usage"] = UsageAnswer("n1", 0.5);
  const auto all = AskAll();
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_THAT(IdsIn(*all), ElementsAre("a", "b", "p", "q"));
  EXPECT_FALSE(all->has_more_jobs);
  EXPECT_EQ(all->UseOfJob("a").cores, 1.5);
  EXPECT_FALSE(all->UseOfJob("p").is_known());
  const Use node = all->UseOfNode(all->nodes.nodes[0]);
  EXPECT_EQ(node.cores, 2);
  EXPECT_EQ(node.memory, 2e9);
  EXPECT_EQ(node.sent, 7) << "both jobs see the same network card";
  EXPECT_FALSE(node.is_doubtful());
  EXPECT_FALSE(all->UseOfNode(all->nodes.nodes[1]).is_known());
  EXPECT_THAT(
      fake_.requests(),
      UnorderedElementsAre("GET /v1/nodes", "GET /v1/job-summaries?limit=200&state=Queued",
                           ::testing::StartsWith("GET /v1/job-summaries?limit=1000&state="),
                           "GET /v1/jobs/a/usage?points=1", "GET /v1/jobs/b/usage?points=1"));
}

TEST_F(LiveViewTest, HasAJobOnceThatStartsMeanwhile) {
  answers_["/v1/job-summaries?limit=1000"]["jobs"] = {JobAnswer("a", "Preparing")};
  answers_["/v1/job-summaries?limit=200&state=Queued"]["jobs"] = {JobAnswer("a", "Queued")};
  const auto all = AskAll();
  ASSERT_TRUE(all.ok());
  EXPECT_THAT(IdsIn(*all), ElementsAre("a"));
  EXPECT_EQ(all->jobs[0].state, "Preparing");
}

TEST_F(LiveViewTest, FindsStepsAndTrialsByTheirNodes) {
  answers_["/v1/nodes"]["nodes"] = {NodeAnswer("n1", {"pipe.train"}),
                                    NodeAnswer("n2", {"pipe.train", "gone"})};
  answers_["/v1/jobs/pipe.train"] = JobAnswer("pipe.train", "Running");
  answers_["/v1/jobs/pipe.train/usage"] = UsageAnswer("n1", 1);
  const auto all = AskAll();
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_THAT(IdsIn(*all), ElementsAre("pipe.train"));
  EXPECT_EQ(all->UseOfJob("pipe.train").cores, 1);
}

TEST_F(LiveViewTest, SaysThatANodeIsNotWhollyKnown) {
  answers_["/v1/nodes"]["nodes"] = {NodeAnswer("n1", {"a", "b"})};
  answers_["/v1/job-summaries?limit=1000"]["jobs"] = {JobAnswer("a", "Running"),
                                                      JobAnswer("b", "Running")};
  answers_["/v1/jobs/a/usage"] = UsageAnswer("n1", 1.5);
  const auto all = AskAll();
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->UseOfNode(all->nodes.nodes[0]).cores, 1.5);
  EXPECT_TRUE(all->UseOfNode(all->nodes.nodes[0]).is_partial);
}

TEST_F(LiveViewTest, AsksThoseFirstThatWereAskedLongestAgo) {
  json jobs = json::array();
  for (int i = 0; i < 40; ++i) {
    jobs.push_back(JobAnswer(absl::StrCat("job", 10 + i), "Running"));
    answers_[absl::StrCat("/v1/jobs/job", 10 + i, "/usage")] = UsageAnswer("n1", 1);
  }
  answers_["/v1/job-summaries?limit=1000"]["jobs"] = jobs;
  const auto first = AskAll();
  ASSERT_TRUE(first.ok());
  EXPECT_THAT(first->usage, SizeIs(kMostAskedJobs));
  const auto second = AskAll(*first);
  ASSERT_TRUE(second.ok());
  EXPECT_THAT(second->usage, SizeIs(40));
  for (const auto& [id, usage] : second->usage) {
    if (first->usage.contains(id)) continue;
    EXPECT_GE(usage.time, first->time) << id;
  }
  // A job that has ended is forgotten.
  answers_["/v1/job-summaries?limit=1000"]["jobs"] = {JobAnswer("job10", "Running")};
  EXPECT_THAT(AskAll(*second)->usage, SizeIs(1));
}

TEST_F(LiveViewTest, IsNoneWhereTheServiceIsAway) {
  answers_["/v1/job-summaries?limit=1000"]["jobs"] = {JobAnswer("a", "Running")};
  for (const char* part : {"nodes", "Queued", "limit=1000", "usage"}) {
    away_ = part;
    EXPECT_TRUE(absl::IsUnavailable(AskAll().status())) << part;
  }
}

TEST_F(LiveViewTest, HasOneJobAndItsRanks) {
  answers_["/v1/jobs/a"] = JobAnswer("a", "Running");
  answers_["/v1/jobs/a/usage"] = UsageAnswer("n1", 1.5);
  ServiceClient service(fake_.connect()());
  const auto one = AskForJob(service, "a");
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->open, "a");
  EXPECT_EQ(one->job->state, "Running");
  EXPECT_THAT(one->usage.at("a").usage.nodes, SizeIs(1));
  EXPECT_THAT(fake_.requests(), ElementsAre("GET /v1/jobs/a", "GET /v1/jobs/a/usage?points=60"));
  EXPECT_TRUE(absl::IsNotFound(AskForJob(service, "other").status()));
}

TEST(LiveViewAgeTest, CountsFromTheAnswerThatItCameWith) {
  LiveView view{.time = absl::FromUnixSeconds(100)};
  NodeUsageView node;
  node.name = "n1";
  node.age = 4;
  node.recent.cpu = {1};
  view.usage["a"] = {absl::FromUnixSeconds(93), {.live = true, .nodes = {node}}};
  EXPECT_EQ(view.AgeOfUsage("a"), absl::Seconds(7));
  EXPECT_EQ(view.UseOfJob("a").age, absl::Seconds(11));
  EXPECT_TRUE(view.UseOfJob("a").is_doubtful());
}

TEST_F(LiveViewTest, IsAJsonDocument) {
  answers_["/v1/nodes"]["nodes"] = {NodeAnswer("n1", {"a"}), NodeAnswer("n2", {})};
  answers_["/v1/job-summaries?limit=1000"]["jobs"] = {JobAnswer("a", "Running")};
  answers_["/v1/jobs/a/usage"] = UsageAnswer("n1", 1.5);
  answers_["/v1/jobs/a"] = JobAnswer("a", "Running");
  const json all = json::parse(LiveViewJson(*AskAll()));
  EXPECT_EQ(all["nodes"][0]["name"], "n1");
  EXPECT_EQ(all["nodes"][0]["cores"], 2);
  EXPECT_EQ(all["nodes"][0]["given"]["cores"], 1);
  EXPECT_EQ(all["nodes"][0]["use"]["cpu"], 1.5);
  EXPECT_EQ(all["nodes"][0]["use"]["disk_read"], nullptr);
  EXPECT_EQ(all["nodes"][0]["use"]["gpu_use"], 0.75);
  EXPECT_EQ(all["nodes"][0]["use"]["gpu_memory"], 3e9);
  EXPECT_EQ(all["nodes"][0]["use"]["gpu_memory_total"], 8e10);
  EXPECT_EQ(all["nodes"][0]["use"]["gpu_power"], 300);
  EXPECT_EQ(all["nodes"][0]["use"]["gpu_temperature"], 61);
  EXPECT_EQ(all["nodes"][1]["use"], nullptr);
  EXPECT_EQ(all["jobs"][0]["id"], "a");
  EXPECT_EQ(all["jobs"][0]["use"]["cpu"], 1.5);
  EXPECT_EQ(all["more_jobs"], false);
  EXPECT_EQ(all["warnings"], json::array());

  ServiceClient service(fake_.connect()());
  const json one = json::parse(LiveViewJson(*AskForJob(service, "a")));
  EXPECT_EQ(one["job"]["id"], "a");
  EXPECT_EQ(one["live"], true);
  EXPECT_EQ(one["nodes"][0]["ranks"][0]["rank"], 0);
  EXPECT_EQ(one["nodes"][0]["ranks"][0]["use"]["cpu"], 0.75);
}

}  // namespace
}  // namespace tutti::client
