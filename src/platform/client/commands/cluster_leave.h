// What it takes for machines to leave: no jobs on them, and, of those that come and go, no power.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "platform/client/commands/cluster.h"
#include "platform/cluster/remote.h"

namespace tutti::client {

// Slurm's nodes take no more jobs and, at the end, have none.
absl::Status Drain(Context& context, cluster::Remote& remote, const std::string& controller,
                   const std::vector<std::string>& nodes, int wait_seconds);

// Nodes of autoscale, by the site's command. With `force` their jobs are requeued, if they may be,
// or ended, and one that stays on is told.
absl::Status SwitchOff(Context& context, cluster::Remote& remote, const std::string& controller,
                       const std::vector<std::string>& nodes, bool force);

}  // namespace tutti::client
