// Tells whether a Python program still runs or has come to its end, by what Linux tells of its
// process.
//
// A Python catches SIGINT from its begin, and gives that up as it finalizes, before it calls what
// is registered by Py_AtExit: of mpi4py MPI_Finalize, which waits for the other ranks.
#pragma once

#include <sys/types.h>

#include <vector>

#include "absl/strings/string_view.h"

namespace tutti::launch {

enum class PythonState {
  kUnknown,  // no Python, or one that was begun with SIGINT ignored
  kRuns,
  kEnded,  // by an exception, sys.exit or its last line; its process is still there
};

// Returns the state of a process by the text of its /proc/PID/status.
PythonState PythonStateIn(absl::string_view status);

// Returns kEnded if one of them is a Python that has ended, else kRuns if one is a Python that
// runs.
PythonState PythonStateOf(const std::vector<pid_t>& processes);

}  // namespace tutti::launch
