#include "platform/service/monitoring/monitoring.h"

#include <algorithm>
#include <memory>

#include "platform/service/allocation/list_nodes.h"
#include "platform/service/attempt/node_room.h"

namespace tutti::service {
namespace {

std::string ComputeOf(const LiveJob& job) {
  const std::string& compute = job.record.job.spec.compute;
  return compute.empty() ? "local" : compute;
}

bool IsOlder(const Monitoring::PlacedJob& a, const Monitoring::PlacedJob& b) {
  return a.sequence < b.sequence;
}

// Makes room in a heap with the youngest on top for a job of that sequence; false: `most` are
// older.
bool HasRoom(std::vector<Monitoring::PlacedJob>& heap, int64_t sequence, size_t most) {
  if (heap.size() < most) return true;
  if (most == 0 || heap.front().sequence < sequence) return false;
  std::pop_heap(heap.begin(), heap.end(), IsOlder);
  heap.pop_back();
  return true;
}

void AddJob(const SharedState& state, const LiveJob& job, const MonitoringLimits& limits,
            Monitoring& seen) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock) {
  const store::JobRecord& record = job.record;
  Monitoring::Compute& compute = seen.computes[ComputeOf(job)];
  ++compute.jobs[record.last.state];
  if (record.last.state == store::JobState::kQueued) {
    compute.oldest_wait = std::max(compute.oldest_wait, state.clock->Now() - record.job.created);
  }
  if (job.placed == nullptr) return;
  const auto nodes = static_cast<int64_t>(job.placed->placement.nodes.size());
  compute.nodes_in_use += nodes;
  if (seen.placed.size() >= limits.jobs) ++seen.jobs_left_out;
  if (!HasRoom(seen.placed, record.job.sequence, limits.jobs)) return;
  seen.placed.push_back({.id = record.job.id,
                         .experiment = record.job.spec.experiment_name,
                         .compute = ComputeOf(job),
                         .state = record.last.state,
                         .nodes = nodes,
                         .ranks = record.job.spec.WorldSize(),
                         .ran = RunTimeOf(state, job),
                         .log_bytes = job.placed->logs ? job.placed->logs->bytes() : 0,
                         .sequence = record.job.sequence});
  std::push_heap(seen.placed.begin(), seen.placed.end(), IsOlder);
}

// A view of a large gang's usage holds its lock for a moment, in which nobody is to hold the
// service's.
void AddUsage(SharedState& state, const JobTable& table, Monitoring& seen) {
  std::map<std::string, std::shared_ptr<const JobUsage>> usage_of;
  for (const Monitoring::PlacedJob& job : seen.placed) usage_of[job.id];
  table.VisitLive([&](const LiveJob& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock) {
    if (job.placed == nullptr) return;
    const auto at = usage_of.find(job.record.job.id);
    if (at != usage_of.end()) at->second = job.placed->usage;
  });
  for (Monitoring::PlacedJob& job : seen.placed) {
    if (const auto& usage = usage_of[job.id]) job.usage = usage->Now(state.clock->Now());
  }
}

void AddLocalNode(const LocalNode& node, const MonitoringLimits& limits, Monitoring& seen) {
  Monitoring::Compute& local = seen.computes["local"];
  const char* const state = node.jobs.empty() ? "idle" : "running";
  ++local.nodes[node.cordon != nullptr ? "cordoned" : state];
  local.has += RoomOf(node.node);
  *local.used += node.used;
  if (seen.nodes.size() < limits.nodes) {
    seen.nodes.push_back(StatusOf(node));
  } else {
    ++seen.nodes_left_out;
  }
}

void AddClusterNodes(const std::string& name, const std::vector<engine::Node>& nodes,
                     const ClusterCordons& cordons, Monitoring& seen) {
  Monitoring::Compute& compute = seen.computes[name];
  for (const engine::Node& node : nodes) {
    ++compute.nodes[cordons.Find(name, node.name) == nullptr ? node.state : "cordoned"];
    compute.has += RoomOf(node);
  }
}

}  // namespace

Monitoring Monitor(SharedState& state, const JobTable& table, const LeavingAllocations& leaving,
                   const JobCounters& counters, ClusterNodes& cluster_nodes,
                   const MonitoringLimits& limits) {
  Monitoring seen;
  seen.computes["local"].used.emplace();
  for (const auto& [name, engine] : state.engines.clusters) {
    seen.computes[name].why_out_of_reach = engine->WhyOutOfReach();
  }
  table.VisitLive([&](const LiveJob& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock) {
    AddJob(state, job, limits, seen);
  });
  std::sort_heap(seen.placed.begin(), seen.placed.end(), IsOlder);
  AddUsage(state, table, seen);
  seen.writes = state.store->CountWrites();
  const auto clusters = cluster_nodes.Look();
  ClusterCordons cluster_cordons;
  {
    StateLock lock(state);
    seen.counts = counters.counts();
    VisitLocalNodes(state, table, leaving,
                    [&](const LocalNode& node) { AddLocalNode(node, limits, seen); });
    seen.disk_is_full = !state.disk_is_full.empty();
    seen.disk = state.disk_room;
    seen.disk_reserve = state.disk_reserve;
    seen.problems =
        static_cast<int64_t>(state.problems.Lines().size()) + (seen.disk_is_full ? 1 : 0);
    for (const auto& [node, cordon] : state.cordons) {
      if (cordon.author != store::CordonAuthor::kUser) ++seen.problems;
    }
    cluster_cordons = state.cluster_cordons;
  }
  for (const auto& [name, nodes] : clusters) AddClusterNodes(name, *nodes, cluster_cordons, seen);
  return seen;
}

}  // namespace tutti::service
