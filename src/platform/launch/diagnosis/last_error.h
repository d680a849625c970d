// Says in one line why a process failed, from the last part of its stderr and stdout. A pure
// function.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace tutti::launch {

// Returns the cause in `stderr_tail`, at most 500 characters, valid UTF-8: the exception that ended
// a Python program with all of its text ("ValueError: no such label: 17"; of a chain and of several
// ranks see python_exception.h), an uncaught C++ exception with its type, what MPI says of an abort
// or of a failed call, else all of a stderr that is one short message, else the first of the last
// lines that say "error": what a shell's next commands say (rm: cannot remove …) follows from it.
// Then an exception on stdout, where "2>&1 | tee" sends it, else the last line, with those from the
// one that announced it ("…:"), or, if there is none, an error among the last lines of stdout. ""
// if there is none.
std::string LastError(absl::string_view stderr_tail, absl::string_view stdout_tail = "");

// Returns the last line that tells of a write to what is read-only, at most 200 characters; "" if
// none does. A program that caught the error may have ended well without what it was to write.
std::string ReadOnlyWrite(absl::string_view stderr_tail, absl::string_view stdout_tail);

// Returns the exception alone that a program has shown lately and that nobody seems to have caught;
// "" if there is none. For one that still runs.
std::string LastException(absl::string_view stderr_tail);

// Returns whether the last that a program has shown is an exception: it may have ended of it but
// for what waits for others, as mpi4py does.
bool EndsWithException(absl::string_view stderr_tail);

// MpiFailure is what the output of Open MPI's mpirun tells of one of its ranks.
struct MpiFailure {
  int rank = -1;       // of MPI_COMM_WORLD; -1: they tell of none
  std::string error;   // "An error occurred in MPI_Recv: MPI_ERR_TRUNCATE: message truncated"
  bool abort = false;  // it has asked for it, and may have said why
  bool left = false;   // by its end, mostly with exit code 0; the others were ended for it
};

// Returns the first call of MPI that failed, else the rank that left without MPI_Finalize or was
// killed, else the first MPI_Abort: Open MPI says of a rank by mpirun what others say in the rank's
// stderr.
MpiFailure MpiFailureIn(absl::string_view words);

}  // namespace tutti::launch
