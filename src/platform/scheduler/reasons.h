// Writes the text that tells a user why a job waits. Inside the room scheduler only.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "platform/scheduler/scheduler.h"

namespace tutti::scheduler {

// What runs once this decision is carried out, as far as it holds nodes of the cluster.
struct RunningAllocation {
  std::string id;
  int node_count;
  absl::Time end;
};

struct ClusterLoad {
  absl::Time now;
  int free;      // whole nodes, after this decision's starts
  int total;     // nodes of the cluster that jobs may start on
  int cordoned;  // those besides
  std::vector<RunningAllocation> running;
  bool has_parts = false;  // a job runs on a part of a node
  Resources most = {};     // that a node has, of each
};

// Says why a job cannot start that needs more nodes than the `able` ones that could ever take it.
std::string TooLarge(const PendingJob& job, int able, const ClusterLoad& load);
// Says what the first waiting job in the queue waits for, which is to begin at `start`; `free`
// nodes have room for it now.
std::string WaitsForNodes(const PendingJob& job, int free, absl::Time start,
                          const ClusterLoad& load);
// Says why a job behind the first waits: `head` waits, and `ahead` jobs in all are before this one.
std::string WaitsBehind(const PendingJob& job, int free, const PendingJob& head,
                        absl::Time head_start, int ahead, const ClusterLoad& load);

}  // namespace tutti::scheduler
