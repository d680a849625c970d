// Whether a process has loaded an MPI library that starts without its world: Open MPI's, which
// takes a rank that no mpirun has started for a world of one.
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/strings/string_view.h"

namespace tutti::launch {

// The path of Open MPI's library in the text of a /proc/PID/maps; or "".
std::string OpenMpiIn(absl::string_view maps);

// Whether an mpirun, the job's own, has started a process that has this /proc/PID/environ.
bool HasWorld(absl::string_view environment);

// What OpenMpiIn finds of the process and of all below it that have no world.
std::string OpenMpiLoadedBelow(pid_t pid);

}  // namespace tutti::launch
