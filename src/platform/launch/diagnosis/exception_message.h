// Reduces a printed Python exception to one line that says what it is and why it was raised. Pure
// functions. Inside the room launch only.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "platform/launch/diagnosis/printed_lines.h"

namespace tutti::launch {

// Returns the exception that `line` names, which belongs to the traceback that begins at
// `traceback`, with all lines of its text, or the first of many; without where TensorFlow made a
// node of its graph. In a notebook's output it is what IPython tells of the cell that failed; in a
// chain, the first exception, in the words of the last one that tells it. If it has no text, or is
// of the syntax or of a value that os.environ refuses, the place is added. If c10d has printed that
// it does not know a name, that is returned.
std::string ExceptionMessage(const Lines& lines, Lines::const_iterator traceback,
                             Lines::const_iterator line);

// Returns whether `line` is no part of a message that began above it: another traceback, a line of
// a log, of a shell or of another program, a warning of Python, a rule, a stack of C++.
bool EndsAMessage(absl::string_view line);

// Returns whether `account` holds what the exception `cause` says.
bool Tells(absl::string_view account, absl::string_view cause);

// Returns whether `line` is "SyntaxError: invalid syntax" or one of its kinds, which say no more
// without their place.
bool IsSyntaxError(absl::string_view line);

}  // namespace tutti::launch
