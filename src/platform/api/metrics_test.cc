// Covers: service_metrics.cc.
#include "platform/api/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tutti::api {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using Format = base::PrometheusText::Format;

std::vector<std::string> Lines(const Metrics& seen, Format format = Format::kText) {
  return absl::StrSplit(MetricsText(seen, format), '\n');
}

TEST(Metrics, SayOfEachComputeWhatItsJobsAndItsQueueAre) {
  Metrics seen;
  auto& local = seen.service.computes["local"];
  local.jobs = {{store::JobState::kQueued, 2}, {store::JobState::kRunning, 1}};
  local.oldest_wait = absl::Milliseconds(1500);
  local.nodes_in_use = 4;
  seen.service.computes["hpc"].why_out_of_reach = "its folder does not answer";
  EXPECT_THAT(Lines(seen), IsSupersetOf({"tutti_jobs{compute=\"local\",state=\"Queued\"} 2",
                                         "tutti_jobs{compute=\"local\",state=\"Starting\"} 0",
                                         "tutti_jobs{compute=\"hpc\",state=\"Running\"} 0",
                                         "tutti_queue_oldest_seconds{compute=\"local\"} 1.5",
                                         "tutti_compute_up{compute=\"hpc\"} 0",
                                         "tutti_compute_up{compute=\"local\"} 1",
                                         "tutti_nodes_in_use{compute=\"local\"} 4"}));
}

TEST(Metrics, SayWhatHasHappenedSinceTheServiceBegan) {
  Metrics seen;
  service::JobCounters::Counts& counts = seen.service.counts;
  counts.entered[store::JobState::kFailed] = 3;
  counts.submitted[service::SubmissionKind::kChild] = 5;
  counts.failures[service::FailureKind::kOutOfMemory] = 2;
  counts.restarts = 1;
  counts.waits.Add(absl::Seconds(2));
  EXPECT_THAT(
      Lines(seen),
      IsSupersetOf({"tutti_job_transitions_total{state=\"Failed\"} 3",
                    "tutti_job_transitions_total{state=\"Completed\"} 0",
                    "tutti_job_submissions_total{type=\"child\"} 5",
                    "tutti_job_submissions_total{type=\"sweep\"} 0",
                    "tutti_job_failures_total{kind=\"out_of_memory\"} 2",
                    "tutti_job_failures_total{kind=\"node\"} 0", "tutti_job_restarts_total 1",
                    "tutti_job_wait_seconds_bucket{le=\"1.0\"} 0",
                    "tutti_job_wait_seconds_bucket{le=\"10.0\"} 1", "tutti_job_wait_seconds_sum 2",
                    "tutti_job_run_seconds_count 0"}));
}

TEST(Metrics, SayOfAJobThatHasNodesHowItDoes) {
  Metrics seen;
  seen.service.placed.push_back(
      {.id = "j",
       .experiment = "mnist",
       .compute = "local",
       .nodes = 2,
       .ranks = 8,
       .ran = absl::Seconds(7),
       .log_bytes = 100,
       .usage = {.nodes = 2, .cpu = 1.5, .memory = 4096, .gpu_use = 2.5, .gpu_memory = 8192}});
  seen.service.placed.push_back(
      {.id = "l", .compute = "local", .usage = {.nodes = 1, .cpu = 1, .memory = 1}});
  seen.service.placed.push_back({.id = "k", .state = store::JobState::kPreparing, .ranks = 4});
  const std::string who = "compute=\"local\",experiment=\"mnist\",job_id=\"j\"";
  const std::string text = MetricsText(seen, Format::kText);
  EXPECT_THAT(text, Not(::testing::ContainsRegex("tutti_running_job_[^{]*\\{[^}]*job_id=\"k\"")));
  EXPECT_THAT(text, ::testing::ContainsRegex("tutti_placed_job_ranks\\{[^}]*job_id=\"k\"\\} 4"));
  EXPECT_THAT(Lines(seen),
              IsSupersetOf({absl::StrCat("tutti_placed_job_state{", who, ",state=\"Running\"} 1"),
                            absl::StrCat("tutti_running_job_seconds{", who, "} 7"),
                            absl::StrCat("tutti_running_job_nodes{", who, "} 2"),
                            absl::StrCat("tutti_placed_job_ranks{", who, "} 8"),
                            absl::StrCat("tutti_placed_job_log_bytes{", who, "} 100"),
                            absl::StrCat("tutti_job_cores{", who, "} 1.5"),
                            absl::StrCat("tutti_job_memory_bytes{", who, "} 4096"),
                            absl::StrCat("tutti_job_gpus_busy{", who, "} 2.5"),
                            absl::StrCat("tutti_job_gpu_memory_bytes{", who, "} 8192")}));
  EXPECT_THAT(text, Not(::testing::ContainsRegex("tutti_job_gpu[^{]*\\{[^}]*job_id=\"l\"")))
      << "it has none";
  EXPECT_THAT(text, Not(::testing::ContainsRegex("tutti_job_memory_left_bytes\\{")))
      << "which no launcher has told";
  EXPECT_THAT(text, Not(::testing::ContainsRegex("tutti_job_cores\\{[^}]*job_id=\"k\"")));
}

TEST(Metrics, SayWhatEachNodeHasAndWhatOfItIsUsed) {
  service::NodeStatus node;
  node.compute = "local";
  node.node = {.name = "n1", .cores = {0, 1, 2, 3}, .memory_bytes = 1000, .gpus = {"4", "7"}};
  node.cordoned_by = "check";
  node.jobs = {"a", "b"};
  node.used = {.cores = 3, .memory_bytes = 600, .gpus = 1};
  Metrics seen;
  seen.service.nodes.push_back(node);
  auto& hpc = seen.service.computes["hpc"];
  hpc.nodes = {{"idle", 900}, {"unusable", 100}};
  hpc.has.gpus = 8000;
  seen.service.computes["new"];
  seen.service.computes["local"].used =
      scheduler::Resources{.cores = 3, .memory_bytes = 600, .gpus = 1};
  EXPECT_THAT(Lines(seen), IsSupersetOf({"tutti_node_cordoned{compute=\"local\",node=\"n1\"} 1",
                                         "tutti_node_jobs{compute=\"local\",node=\"n1\"} 2",
                                         "tutti_node_cores{compute=\"local\",node=\"n1\"} 4",
                                         "tutti_node_cores_used{compute=\"local\",node=\"n1\"} 3",
                                         "tutti_node_memory_bytes{compute=\"local\",node=\"n1\"} "
                                         "1000",
                                         "tutti_node_gpus_used{compute=\"local\",node=\"n1\"} 1",
                                         "tutti_nodes{compute=\"hpc\",state=\"unusable\"} 100",
                                         "tutti_nodes{compute=\"hpc\",state=\"cordoned\"} 0",
                                         "tutti_nodes{compute=\"hpc\",state=\"off\"} 0",
                                         "tutti_nodes{compute=\"local\",state=\"running\"} 0",
                                         "tutti_compute_cores_used{compute=\"local\"} 3",
                                         "tutti_compute_memory_used_bytes{compute=\"local\"} 600",
                                         "tutti_compute_gpus_used{compute=\"local\"} 1",
                                         "tutti_compute_gpus{compute=\"hpc\"} 8000"}));
  const std::string text = MetricsText(seen, Format::kText);
  EXPECT_THAT(text, Not(HasSubstr("tutti_nodes{compute=\"new\""))) << "it has not said its nodes";
  EXPECT_THAT(text, Not(HasSubstr("_used{compute=\"hpc\""))) << "others give its nodes to jobs";
}

TEST(Metrics, SayHowTheServiceItselfDoes) {
  Metrics seen;
  seen.service.disk = {.least = 64, .available = 500, .disk = 1000};
  seen.service.disk_reserve = 16;
  seen.service.writes.failed = 1;
  seen.service.writes.waiting = 3;
  seen.service.writes.times.Add(absl::Milliseconds(2));
  seen.http.connections = {.strangers = 1, .nodes = 1000, .users = 2, .monitors = 3, .most = 4096};
  seen.http.connections.most_per_role = 3072;
  seen.http.connections.most_of_monitors = 16;
  CallCounts call{.method = "GET", .route = "/v1/jobs/{job}", .answers = {{200, 7}, {404, 1}}};
  call.times.Add(absl::Milliseconds(1));
  seen.http.calls = {call};
  const std::string who = "method=\"GET\",route=\"/v1/jobs/{job}\"";
  EXPECT_THAT(
      Lines(seen),
      IsSupersetOf({std::string("tutti_disk_free_bytes 500"),
                    std::string("tutti_disk_least_bytes 64"),
                    std::string("tutti_disk_reserve_bytes 16"),
                    std::string("tutti_store_write_failures_total 1"),
                    std::string("tutti_store_waiting_writes 3"),
                    std::string("tutti_store_write_seconds_bucket{le=\"0.005\"} 1"),
                    std::string("tutti_http_connections{party=\"node\"} 1000"),
                    std::string("tutti_http_connections{party=\"monitor\"} 3"),
                    std::string("tutti_http_connections_limit{party=\"all\"} 4096"),
                    std::string("tutti_http_connections_limit{party=\"node\"} 3072"),
                    std::string("tutti_http_connections_limit{party=\"user\"} 3072"),
                    std::string("tutti_http_connections_limit{party=\"monitor\"} 16"),
                    absl::StrCat("tutti_http_requests_total{", who, ",status=\"404\"} 1"),
                    absl::StrCat("tutti_http_request_seconds_bucket{", who, ",le=\"0.001\"} 1"),
                    absl::StrCat("tutti_http_request_seconds_count{", who, "} 1")}));
}

TEST(Metrics, SayHowManyJobsAndNodesAreNotTold) {
  Metrics seen;
  seen.service.jobs_left_out = 3;
  seen.service.nodes_left_out = 5;
  EXPECT_THAT(Lines(seen), IsSupersetOf({"tutti_metrics_left_out{of=\"jobs\"} 3",
                                         "tutti_metrics_left_out{of=\"nodes\"} 5"}));
}

class MetricsOfFormat : public ::testing::TestWithParam<Format> {};
INSTANTIATE_TEST_SUITE_P(, MetricsOfFormat, ::testing::Values(Format::kText, Format::kOpenMetrics));

TEST_P(MetricsOfFormat, EachIsToldOnceWithATypeBeforeItsSamples) {
  std::set<std::string> begun;
  std::string last;
  for (const std::string& line : Lines({}, GetParam())) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    if (words[0] != "#") {
      EXPECT_TRUE(line.empty() || absl::StartsWith(line, last)) << line;
    } else if (words[1] == "TYPE") {
      EXPECT_TRUE(begun.insert(words[2]).second) << line;
      last = words[2];
    }
  }
  EXPECT_GT(begun.size(), 45);
  const auto ends = Lines({}, GetParam());
  EXPECT_EQ(ends[ends.size() - 2] == "# EOF", GetParam() == Format::kOpenMetrics);
}

}  // namespace
}  // namespace tutti::api
