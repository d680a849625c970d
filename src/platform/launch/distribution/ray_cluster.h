// Makes one Ray cluster of the nodes of a ray job: the first node starts Ray's head and then the
// job's command; the others join and stay until they are told to end. All that a cluster has is its
// job's own: its port, its folder, its processes. Pure functions of the plan.
#pragma once

#include <string>

#include "platform/launch/environment/process_environment.h"
#include "spec/json/launch_plan.h"

namespace tutti::launch {

// Returns "ADDRESS:PORT" of the head, as ray.init() takes it from RAY_ADDRESS.
std::string RayAddress(const spec::LaunchPlan& plan);

// Returns what Ray (from 2.52 on) asks of whoever connects to it; only who has the job's token can
// compute it.
std::string RayToken(const spec::LaunchPlan& plan);

// Returns the folder in which Ray keeps its session, on every node by the same path, since workers
// take the head's; short, since sockets lie in it, and not to be guessed. The launcher removes it.
std::string RayFolder(const spec::LaunchPlan& plan);

// Returns what the plan's node runs in place of the job's `command`, by a POSIX shell. Fails with a
// last line that says what there was none of: the program, the head, the worker.
std::string RayCommand(const spec::LaunchPlan& plan, const NodeFacts& facts,
                       const std::string& command);

}  // namespace tutti::launch
