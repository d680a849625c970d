// Finds the first program that a shell command runs, as far as that can be told without a shell.
// Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tutti::spec {

struct FirstProgram {
  std::string name;      // as it is looked for in PATH; empty: only a shell could tell
  bool decides = false;  // without it the command fails, whatever follows
};

// Finds the first program behind assignments, and behind `cd`, `echo`, `export` and `set`.
FirstProgram FirstProgramOf(absl::string_view command);

// Returns the words of a command that is one program and arguments in which a shell has nothing to
// expand, quote or interpret; none of any other.
std::vector<std::string> PlainWordsOf(absl::string_view command);

}  // namespace tutti::spec
