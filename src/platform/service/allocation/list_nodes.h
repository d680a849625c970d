// Lists the nodes of all computes with the jobs that hold them.
#pragma once

#include "platform/service/allocation/leaving_allocations.h"
#include "platform/service/allocation/node_list.h"

namespace tutti::service {

// Waits for clusters up to their engines' limits.
NodeList ListNodes(SharedState& state, const JobTable& table, const LeavingAllocations& leaving)
    ABSL_LOCKS_EXCLUDED(service_lock);

}  // namespace tutti::service
