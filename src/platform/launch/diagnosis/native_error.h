// Finds what programs other than Python print about their failure, each in one line: C++'s runtime,
// MPI, sanitizers, and the starters of processes. Pure functions. Inside the room launch only.
#pragma once

#include <string>

#include "platform/launch/diagnosis/printed_lines.h"

namespace tutti::launch {

// Returns "std::runtime_error: no such shard", of an exception that nobody caught; or "".
std::string CppException(const Lines& lines);

// Returns "train: train.cc:2: int main(): Assertion `n == 2' failed."; or "".
std::string AssertionFailure(const Lines& lines);

// Returns "Fatal Python error: Segmentation fault at model.py:3 in forward", which Python says of a
// signal with PYTHONFAULTHANDLER=1; or "".
std::string FatalPythonError(const Lines& lines);

// Returns what MPI says of an abort that the program has asked for, with the last line that was
// printed before, of an error in one of its own calls, or of a component that it lacks; or "".
std::string MpiError(const Lines& lines);

// Returns the rank of MPI_COMM_WORLD of which Open MPI says a failed call, or else an abort; or -1.
int RankOfFailedCall(const Lines& lines);
int RankOfAbort(const Lines& lines);
// Returns the rank that mpirun says has ended without MPI_Finalize, whatever its exit code; or -1.
int RankThatLeft(const Lines& lines);
// Returns the rank of which mpirun says that SIGKILL has ended it; or -1.
int RankThatWasKilled(const Lines& lines);

// Returns what Open MPI prints between two lines of dashes of what it could not do; not that a
// process has failed. Or "".
std::string MpirunFailure(const Lines& lines);

// Returns "Segmentation fault (11): Address not mapped (1) at address (nil), in ./train(+0x11ba)":
// what Open MPI's own handler prints in the rank that the signal ends; or "".
std::string SignalCaughtByOpenMpi(const Lines& lines);

// Returns "2 tests failed, the first: FAILED test_a.py::test_b - ValueError: x", of pytest's
// summary on stdout; or "".
std::string PytestFailure(const Lines& lines);

// Returns what a starter says of a process that a signal ended, which printed nothing: "a process
// that it started was ended: Signal 9 (SIGKILL) received by PID 71"; or "".
std::string SignalOfStarted(const Lines& lines);

// Returns whether that may be how the starter itself ended a process, since another had failed.
bool MayBeTheStarters(absl::string_view signal);

// Says how the first process that failed by itself ended: "… failed with exit code 3 (pid: 71)"; or
// "".
std::string ExitCodeOfStarted(const Lines& lines);

}  // namespace tutti::launch
