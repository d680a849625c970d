// Why a process failed, in one line, from the end of what it wrote. A pure function.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace tutti::launch {

// The best line of `stderr_tail`, at most 300 characters, valid UTF-8: the exception that ended a
// Python program ("ValueError: no such label: 17"), an uncaught C++ exception with its type, what
// Open MPI says of MPI_Abort, a sanitizer's or assertion's summary, the last line that says
// "error", an exception on stdout, where "2>&1 | tee" sends it, else the last line. "" if there is
// none.
std::string LastError(absl::string_view stderr_tail, absl::string_view stdout_tail = "");

// The exception alone that a program has shown lately and that nobody seems to have caught; "" if
// there is none. For one that still runs.
std::string LastException(absl::string_view stderr_tail);

}  // namespace tutti::launch
