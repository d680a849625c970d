#include "platform/api/metrics.h"

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "platform/api/service_metrics.h"

namespace tutti::api {
namespace {

using service::Monitoring;
using service::NodeStatus;
using Type = base::PrometheusText::Type;

// The states of a node of this machine, and of a cluster's.
constexpr std::array kLocalStates = {"cordoned", "idle", "running"};
constexpr std::array kClusterStates = {"cordoned",  "idle",    "leaving", "off",
                                       "preparing", "running", "unusable"};

// Adds a sample for each kind, 0 for one that has not occurred.
template <typename Kinds, typename Counts>
void AddByKind(base::PrometheusText& text, const Kinds& kinds, const Counts& counts,
               const char* label) {
  for (const auto kind : kinds) {
    const auto found = counts.find(kind);
    text.Add(found == counts.end() ? 0 : static_cast<double>(found->second), {{label, Name(kind)}});
  }
}

void AddQueue(base::PrometheusText& text, const Monitoring& seen) {
  text.Begin("tutti_jobs", Type::kGauge, "Jobs that have not ended.");
  for (const auto& [name, compute] : seen.computes) {
    for (const store::JobState state : store::kJobStates) {
      if (IsEnd(state)) continue;
      const auto found = compute.jobs.find(state);
      text.Add(found == compute.jobs.end() ? 0 : static_cast<double>(found->second),
               {{"compute", name}, {"state", Name(state)}});
    }
  }
  text.Begin("tutti_queue_oldest_seconds", Type::kGauge,
             "Time since the oldest job that is Queued was submitted.");
  for (const auto& [name, compute] : seen.computes) {
    text.Add(absl::ToDoubleSeconds(compute.oldest_wait), {{"compute", name}});
  }
}

void AddCounts(base::PrometheusText& text, const service::JobCounters::Counts& counts) {
  text.Begin("tutti_job_submissions_total", Type::kCounter,
             "Jobs that were taken in; child: steps of pipelines and trials of sweeps.");
  AddByKind(text, service::kSubmissionKinds, counts.submitted, "type");
  text.AddOne("tutti_job_restarts_total", Type::kCounter,
              "How often a job has begun again, as after the loss of a node.",
              static_cast<double>(counts.restarts));
  text.Begin("tutti_job_transitions_total", Type::kCounter,
             "How often a job has come into a state, since the service began.");
  AddByKind(text, store::kJobStates, counts.entered, "state");
  text.Begin("tutti_job_failures_total", Type::kCounter, "Jobs that have failed, by what failed.");
  AddByKind(text, service::kFailureKinds, counts.failures, "kind");
  text.Begin("tutti_job_wait_seconds", Type::kHistogram,
             "Time from a job's submission until all its processes ran for the first time.");
  text.Add(counts.waits);
  text.Begin("tutti_job_run_seconds", Type::kHistogram,
             "How long jobs that have ended ran, in their last attempt.");
  text.Add(counts.runs);
}

void AddPlacedJobs(base::PrometheusText& text, absl::Span<const Monitoring::PlacedJob> jobs) {
  text.Begin("tutti_placed_job_state", Type::kGauge,
             "Always 1, with the state of a job that has nodes as a label.");
  for (const Monitoring::PlacedJob& job : jobs) {
    text.Add(1, {{"compute", job.compute},
                 {"experiment", job.experiment},
                 {"job_id", job.id},
                 {"state", Name(job.state)}});
  }
  const auto each = [&](bool running, const char* name, const char* help, const auto& value) {
    text.Begin(name, Type::kGauge, help);
    for (const Monitoring::PlacedJob& job : jobs) {
      if (running && job.state != store::JobState::kRunning) continue;
      text.Add(static_cast<double>(value(job)),
               {{"compute", job.compute}, {"experiment", job.experiment}, {"job_id", job.id}});
    }
  };
  using Job = Monitoring::PlacedJob;
  each(true, "tutti_running_job_seconds", "How long a job that is Running has run.",
       [](const Job& job) { return absl::ToDoubleSeconds(job.ran); });
  each(true, "tutti_running_job_nodes", "Nodes of a job that is Running.",
       [](const Job& job) { return job.nodes; });
  each(false, "tutti_placed_job_ranks", "Processes of a job that has nodes.",
       [](const Job& job) { return job.ranks; });
  each(false, "tutti_placed_job_log_bytes", "Kept output of a job that has nodes.",
       [](const Job& job) { return job.log_bytes; });
  const auto each_used = [&](const char* name, const char* help, const auto& value) {
    text.Begin(name, Type::kGauge, help);
    for (const Job& job : jobs) {
      const std::optional<double> known = value(job.usage);
      if (job.usage.nodes == 0 || !known) continue;
      text.Add(*known,
               {{"compute", job.compute}, {"experiment", job.experiment}, {"job_id", job.id}});
    }
  };
  using Usage = service::UsageNow;
  each_used("tutti_job_cores", "Processors that are busy with a job's processes.",
            [](const Usage& usage) { return usage.cpu; });
  each_used("tutti_job_memory_bytes", "Memory of a job's processes.",
            [](const Usage& usage) { return usage.memory; });
  each_used("tutti_job_memory_left_bytes",
            "What a job's processes can take before a limit, on the node that has least.",
            [](const Usage& usage) { return usage.memory_left; });
  each_used("tutti_job_gpus_busy", "GPUs of a job that are busy.",
            [](const Usage& usage) { return usage.gpu_use; });
  each_used("tutti_job_gpu_memory_bytes", "Memory of a job's GPUs that is in use.",
            [](const Usage& usage) { return usage.gpu_memory; });
}

// With 0 for states in which none is, so that no series ends; nothing of a cluster that has not
// said its nodes.
std::map<std::string, int64_t> CountsOfNodes(const std::string& name,
                                             const Monitoring::Compute& compute) {
  std::map<std::string, int64_t> counts = compute.nodes;
  if (name == "local") {
    for (const char* const state : kLocalStates) counts.try_emplace(state, 0);
  } else if (!counts.empty()) {
    for (const char* const state : kClusterStates) counts.try_emplace(state, 0);
  }
  return counts;
}

void AddComputes(base::PrometheusText& text, const Monitoring& seen) {
  const auto each = [&](const char* name, const char* help, const auto& value) {
    text.Begin(name, Type::kGauge, help);
    for (const auto& [compute, of] : seen.computes) {
      text.Add(static_cast<double>(value(of)), {{"compute", compute}});
    }
  };
  using Compute = Monitoring::Compute;
  each("tutti_compute_up", "1 if a compute can be told to start jobs, else 0.",
       [](const Compute& of) { return of.why_out_of_reach.empty() ? 1 : 0; });
  each("tutti_nodes_in_use", "Nodes that jobs of this service have, or a part of.",
       [](const Compute& of) { return of.nodes_in_use; });
  each("tutti_compute_cores", "Processors of a compute's nodes.",
       [](const Compute& of) { return of.has.cores; });
  each("tutti_compute_memory_bytes", "Memory of a compute's nodes.",
       [](const Compute& of) { return of.has.memory_bytes; });
  each("tutti_compute_gpus", "GPUs of a compute's nodes.",
       [](const Compute& of) { return of.has.gpus; });
  const auto each_used = [&](const char* name, const char* help, const auto& value) {
    text.Begin(name, Type::kGauge, help);
    for (const auto& [compute, of] : seen.computes) {
      if (of.used) text.Add(static_cast<double>(value(*of.used)), {{"compute", compute}});
    }
  };
  using scheduler::Resources;
  each_used("tutti_compute_cores_used", "Processors of this machine's nodes that jobs have.",
            [](const Resources& used) { return used.cores; });
  each_used("tutti_compute_memory_used_bytes",
            "Memory of this machine's nodes that jobs have been given.",
            [](const Resources& used) { return used.memory_bytes; });
  each_used("tutti_compute_gpus_used", "GPUs of this machine's nodes that jobs have.",
            [](const Resources& used) { return used.gpus; });
  text.Begin("tutti_nodes", Type::kGauge, "Nodes of a compute that are in a state.");
  for (const auto& [name, compute] : seen.computes) {
    for (const auto& [state, count] : CountsOfNodes(name, compute)) {
      text.Add(static_cast<double>(count), {{"compute", name}, {"state", state}});
    }
  }
}

void AddNodes(base::PrometheusText& text, absl::Span<const NodeStatus> nodes) {
  const auto each = [&](const char* name, const char* help, const auto& value) {
    text.Begin(name, Type::kGauge, help);
    for (const NodeStatus& node : nodes) {
      text.Add(static_cast<double>(value(node)),
               {{"compute", node.compute}, {"node", node.node.name}});
    }
  };
  each("tutti_node_cordoned", "1 if a node gets no jobs, by a user or since it is ill.",
       [](const NodeStatus& node) { return node.cordoned_by.empty() ? 0 : 1; });
  each("tutti_node_jobs", "Jobs on a node.",
       [](const NodeStatus& node) { return node.jobs.size(); });
  each("tutti_node_cores", "Processors of a node.",
       [](const NodeStatus& node) { return node.node.cores.size(); });
  each("tutti_node_cores_used", "Processors of a node that jobs have.",
       [](const NodeStatus& node) { return node.used.cores; });
  each("tutti_node_memory_bytes", "Memory of a node.",
       [](const NodeStatus& node) { return node.node.memory_bytes; });
  each("tutti_node_memory_used_bytes", "Memory of a node that jobs have been given.",
       [](const NodeStatus& node) { return node.used.memory_bytes; });
  each("tutti_node_gpus", "GPUs of a node.",
       [](const NodeStatus& node) { return node.node.gpus.size(); });
  each("tutti_node_gpus_used", "GPUs of a node that jobs have.",
       [](const NodeStatus& node) { return node.used.gpus; });
}

}  // namespace

std::string MetricsText(const Metrics& seen, base::PrometheusText::Format format) {
  base::PrometheusText text(format);
  AddServiceMetrics(text, seen);
  AddQueue(text, seen.service);
  AddCounts(text, seen.service.counts);
  AddPlacedJobs(text, seen.service.placed);
  AddComputes(text, seen.service);
  AddNodes(text, seen.service.nodes);
  text.Begin("tutti_metrics_left_out", Type::kGauge,
             "Jobs and nodes without series of their own, as there are more than the limit.");
  text.Add(static_cast<double>(seen.service.jobs_left_out), {{"of", "jobs"}});
  text.Add(static_cast<double>(seen.service.nodes_left_out), {{"of", "nodes"}});
  return std::move(text).Finish();
}

}  // namespace tutti::api
