// Lists the nodes of all computes with the jobs that hold them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "platform/service/allocation/leaving_allocations.h"
#include "platform/service/allocation/node_list.h"

namespace tutti::service {

// A node of this machine as the service holds it.
struct LocalNode {
  const engine::Node& node;
  const std::vector<std::string>& jobs;  // on it, sorted
  scheduler::Resources used;             // by these
  const store::Cordon* cordon;           // null: it has none
};
NodeStatus StatusOf(const LocalNode& node);
// Calls visit for each node of this machine.
void VisitLocalNodes(const SharedState& state, const JobTable& table,
                     const LeavingAllocations& leaving,
                     const std::function<void(const LocalNode&)>& visit)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

// Waits for clusters up to their engines' limits.
NodeList ListNodes(SharedState& state, const JobTable& table, const LeavingAllocations& leaving)
    ABSL_LOCKS_EXCLUDED(service_lock);

}  // namespace tutti::service
