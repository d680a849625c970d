// What Slurm calls to switch nodes on and off: shell programs on the controller that call the
// site's commands, as Slurm's user, one node at a time and all nodes at once.
#pragma once

#include <string>

#include "platform/cluster/description.h"

namespace tutti::cluster {

// Tries `resume` three times for each node; one that still fails is set down with the reason, so
// that its job goes elsewhere and people see why. Each node's log keeps what the command said.
std::string ResumeProgram(const Autoscale& scale);
// The same for `suspend`; Slurm calls it also for nodes that did not come in time.
std::string SuspendProgram(const Autoscale& scale);

}  // namespace tutti::cluster
