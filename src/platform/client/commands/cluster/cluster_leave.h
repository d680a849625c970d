// Prepares machines to leave a cluster: drains them of jobs and, where autoscale manages them,
// switches them off.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "platform/client/commands/cluster/cluster.h"
#include "platform/cluster/remote.h"

namespace tutti::client {

// Has Slurm give the nodes no more jobs, and waits up to `wait_seconds` until they have none.
absl::Status Drain(Context& context, cluster::Remote& remote, const std::string& controller,
                   const std::vector<std::string>& nodes, int wait_seconds);

// Switches nodes of autoscale off by the site's command. With `force` their jobs are requeued, if
// they may be, or ended; a node that stays on is reported and is no error.
absl::Status SwitchOff(Context& context, cluster::Remote& remote, const std::string& controller,
                       const std::vector<std::string>& nodes, bool force);

}  // namespace tutti::client
