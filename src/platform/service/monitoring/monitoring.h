// Monitoring is what a monitor is told of a service: of its jobs, its queue, its nodes, its store
// and its disk, from memory alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "platform/scheduler/resources.h"
#include "platform/service/allocation/leaving_allocations.h"
#include "platform/service/allocation/node_list.h"
#include "platform/service/jobs/job_counters.h"
#include "platform/service/jobs/job_table.h"
#include "platform/service/jobs/shared_state.h"
#include "platform/service/monitoring/cluster_nodes.h"
#include "platform/service/usage/job_usage.h"

namespace tutti::service {

// How many jobs and nodes are told of by themselves: the oldest jobs, and the first nodes. The
// others are in the sums alone.
struct MonitoringLimits {
  size_t jobs = 1000, nodes = 1000;
};

struct Monitoring {
  struct Compute {
    std::map<store::JobState, int64_t> jobs;  // that have not ended
    absl::Duration oldest_wait;               // of those that are Queued; since submission
    int64_t nodes_in_use = 0;                 // by this service's jobs; parts count as one
    std::string why_out_of_reach;             // "": it can be used
    // How many nodes are in each state, by the words of `tutti node list`, and what all of them
    // have. Of a cluster that has not said it yet: none.
    std::map<std::string, int64_t> nodes;
    scheduler::Resources has;
    // This service's jobs have been given so much of it, where it is this service that gives it.
    std::optional<scheduler::Resources> used;
  };
  // A job that has nodes.
  struct PlacedJob {
    std::string id, experiment, compute;
    store::JobState state = store::JobState::kRunning;
    int64_t nodes = 0, ranks = 0;
    absl::Duration ran;      // zero before it is Running
    uint64_t log_bytes = 0;  // that are kept of its output
    UsageNow usage;
    int64_t sequence = 0;
  };

  JobCounters::Counts counts;                     // since this service began
  std::map<std::string, Compute> computes;        // "local" and those of the site
  std::vector<PlacedJob> placed;                  // the oldest first; no pipelines and sweeps
  std::vector<NodeStatus> nodes;                  // of this machine
  int64_t jobs_left_out = 0, nodes_left_out = 0;  // of these two, for the limits
  int64_t problems = 0;                           // those of Service::Problems that memory knows
  bool disk_is_full = false;
  DiskRoom disk;              // of the service's folder, as at the last tick
  uint64_t disk_reserve = 0;  // bytes that are held for the store
  store::WriteCounts writes;
};

// Takes the lock: of the jobs for some at a time, once for all nodes of this machine.
Monitoring Monitor(SharedState& state, const JobTable& table, const LeavingAllocations& leaving,
                   const JobCounters& counters, ClusterNodes& cluster_nodes,
                   const MonitoringLimits& limits) ABSL_LOCKS_EXCLUDED(service_lock);

}  // namespace tutti::service
