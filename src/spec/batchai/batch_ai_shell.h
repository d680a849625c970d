// Writes what a shell does on the node before a job's command: variables that expand there, and the
// preparation of the node. Inside the room spec only. Pure functions; thread-safe.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace tutti::spec {

// Returns whether a variable's value is what a job file's environment_variables cannot say: it has
// variables of Batch AI, which expand on the node, or several lines.
bool NeedsAShell(absl::string_view value);

// Returns the line that sets the variable. Variables of Batch AI in the value expand, no others.
std::string Exported(absl::string_view name, absl::string_view value);

// Returns a command that prepares the node, then does what `command` does: the first process of the
// node prepares it, and the others wait. `in_image`: each process has a container of its own, and
// prepares it too.
std::string Prepared(absl::string_view preparation, absl::string_view command, bool in_image);

}  // namespace tutti::spec
