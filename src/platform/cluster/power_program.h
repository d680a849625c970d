// Writes the programs that Slurm calls to switch nodes on and off: shell programs on the controller
// that call the site's commands, as Slurm's user, one node at a time and all nodes at once.
#pragma once

#include <string>
#include <vector>

#include "platform/cluster/description.h"

namespace tutti::cluster {

// Tries `resume` three times for each node; one that still fails is set down with the reason, so
// that its job goes elsewhere and people see why. Each node's log keeps what the command said.
std::string ResumeProgram(const Autoscale& scale);
// Returns the same for `suspend`; Slurm calls it also for nodes that did not come in time.
std::string SuspendProgram(const Autoscale& scale);

// Switches on those that stay, `min` of them: at once what is off, when it is gone what is on its
// way there, and anew what has vanished. What someone set down, or could not be had, is left alone.
std::string KeepProgram(const Autoscale& scale);
// Returns a script that runs on the controller, once slurmctld answers. It runs that program beside
// it, now and whenever Slurm sees a node go down.
std::string KeepText();

// Returns a script that runs on the controller. It calls the suspend program for those of these
// nodes that Slurm does not take for off, and prints their names. With `force` their jobs are
// requeued, if they may be, or ended first. It fails with those that stay on.
std::string SwitchOffText(const std::vector<std::string>& nodes, bool force);

}  // namespace tutti::cluster
