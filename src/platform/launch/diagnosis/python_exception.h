// Finds which Python exception ended a program that printed several. Pure functions. Inside the
// room launch only.
//
// The earliest exception of a chain is the cause. "The above exception was the direct cause" (raise
// … from) tells it in other words, and so does "During handling of the above exception" if a
// `raise` of the function that caught it made the second one. The line then has those words,
// followed by the earliest exception unless they quote it:
//   RuntimeError: the configuration cannot be read (caused by FileNotFoundError: …)
// A first one that knows but the exit code of a program gives way to what that program said.
// What else befalls a handler, a `finally` or a `with` is no account of the first exception but a
// consequence, or a second way that failed too; the line begins with the first:
//   ValueError: no such label: 17 (while that was handled: FileNotFoundError: …; then: …)
// A consequence that speaks of a lost peer is left out.
//
// If several ranks printed to one stream, the first exception counts that does not speak of a lost
// peer. The last exception of a program counts, since earlier ones may be exceptions that it
// handled. If the last one speaks of a lost peer, an earlier one that was shown shortly before
// counts instead.
#pragma once

#include <string>

#include "platform/launch/diagnosis/printed_lines.h"

namespace tutti::launch {

// Returns "" if there is none.
std::string PythonException(const Printed& printed);

// Returns "ExceptionGroup: two failed (2 sub-exceptions): ValueError: one"; or "".
std::string ExceptionGroup(const Lines& lines);

// Returns where the traceback of a starter of processes begins, which says least; or the end.
Lines::const_iterator StartersTraceback(const Lines& lines);

// Returns the exception of that traceback; or "".
std::string StartersException(const Lines& lines);

// Returns where the first traceback begins, or the end.
Lines::const_iterator FirstTraceback(const Lines& lines);

}  // namespace tutti::launch
