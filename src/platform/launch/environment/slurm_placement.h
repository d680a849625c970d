// Completes the plan of a launcher that Slurm has placed: which nodes the gang has got is known
// only there, and comes in TUTTI_GANG, set by the batch step: "NAME ADDRESS;NAME ADDRESS;" in the
// order of the plan's nodes. An address may be a host's name; without one it is the node's name,
// and of a node that is the whole gang, if that has none, this machine's loopback address.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "spec/json/launch_plan.h"

namespace tutti::launch {

// Puts names and numeric addresses into the plan. InvalidArgument if `gang` has another number of
// nodes, NotFound for a name that does not resolve.
absl::Status ApplySlurmPlacement(absl::string_view gang, spec::LaunchPlan& plan);

// Returns whether the cluster, which placed this launcher, tells it to end, and not tutti, which
// leaves the file `stop` in the node's folder first.
bool IsStoppedByCluster(const std::filesystem::path& folder);

// Call at once when a launcher is told to end: if the cluster did that, it leaves the file `told`.
// A launcher that dies before its job's end without the file was not cancelled but lost.
void NoteStopRequest(const std::filesystem::path& folder);

// Returns why a launcher is told to end, if it was the cluster. OK if it was not. May take seconds.
absl::Status ReasonOfStopRequest(const std::filesystem::path& folder, absl::Time now);

// Returns how many of the `own` processors, on which this launcher may run, it has got for its
// processes: not every Slurm binds a job to those that it has given it. If a script asks for
// several tasks on a node, it is what one of them gets. `variables`: the launcher's environment.
int AllocatedCores(const std::map<std::string, std::string>& variables, int own);

// Returns the bytes of memory that Slurm has given the job on this node, by the variables of its
// launcher; 0: all of the node's, or it is not said.
int64_t AllocatedMemory(const std::map<std::string, std::string>& variables);

}  // namespace tutti::launch
