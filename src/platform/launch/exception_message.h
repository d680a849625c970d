// What a Python exception says, in one line, from the lines that were printed of it. Pure
// functions. Inside the room launch only.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tutti::launch {

// The exception that `line` names, which belongs to the traceback that begins at `traceback`; with
// what its first line does not say: where it was, if it has no text or is of the syntax; how its
// text goes on after a
// ":"; what NCCL adds; and what c10d has printed before of a name that nobody knows.
std::string ExceptionMessage(const std::vector<std::string>& lines,
                             std::vector<std::string>::const_iterator traceback,
                             std::vector<std::string>::const_iterator line);

// "SyntaxError: invalid syntax" and its kinds, which say no more without their place.
bool IsSyntaxError(absl::string_view line);

}  // namespace tutti::launch
