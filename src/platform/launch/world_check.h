// Whether a process has loaded an MPI library that starts without its world: Open MPI's, which
// takes a rank that no mpirun has started for a world of one.
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/strings/string_view.h"

namespace tutti::launch {

// The path of Open MPI's library in the text of a /proc/PID/maps; or "".
std::string OpenMpiIn(absl::string_view maps);

// The same of the process and of all below it.
std::string OpenMpiLoadedBelow(pid_t pid);

}  // namespace tutti::launch
