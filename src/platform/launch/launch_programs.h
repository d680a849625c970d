// Runs what this program is under its other names: a launcher that is started ahead of any job,
// what delivers for launchers that do not reach the service, what removes the containers of one
// that died, what mpirun starts in place of the job's command and in place of ssh, and what srun
// starts in place of a rank. The latter three talk to the node's launcher over a Unix socket
// (rank_listener.h).
#pragma once

#include <optional>

namespace tutti::launch {

// If the arguments say `launch-standby`, `launch-collector …`, `launch-remover …`, `launch-rank`,
// `launch-pmix-task` or `launch-agent …`: runs it and returns its exit code. Call it before
// anything else in main.
//
// launch-standby [FOLDER]: reads the path of a plan from its standard input and becomes that plan's
// launcher, with its log beside the plan. Ends if the input does. What that launcher would make in
// its folder it makes in FOLDER while it waits, for who gives it the plan to move there.
// launch-collector FOLDER SERVICE_FILE: collector.h.
// launch-remover FOLDER: removes the containers that a launcher of that allocation's folder has
// left when it died, and the note of them (platform/container/job_containers.h); 1 if it could not,
// or a launcher there lives. launch-rank: asks the launcher for its rank's output pipes,
// environment and command, runs that, reports its end, and ends alike (128 + n after signal n).
// SIGTERM is handed on. launch-agent HOST COMMAND…: has HOST's launcher run the command; 0 once it
// has been started. launch-pmix-task: gives the launcher what Slurm has set of PMIx for this task,
// for the rank that it starts, and ends as that does.
std::optional<int> RunLaunchProgram(int argc, const char* const* argv);

}  // namespace tutti::launch
