// Measures, cuts and pads UTF-8 text by the columns of a terminal.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace tutti::client {

// Returns the columns that `text` takes: 0 for combining marks, 2 for wide East Asian characters
// and emoji, 1 for all else, also for each byte that is not UTF-8. Escape sequences are not
// understood: style text after it was measured.
int Columns(absl::string_view text);

// Returns the longest beginning of `text` that fits, with "…" as its last column when something was
// cut.
std::string Shorten(absl::string_view text, int columns);

// Returns `text` with spaces after it up to `columns`.
std::string PadRight(absl::string_view text, int columns);
// Returns `text` with spaces before it up to `columns`.
std::string PadLeft(absl::string_view text, int columns);

// Makes foreign text safe on a terminal: control characters (but not tab) become "?", and so do
// those that end lines or change the order in which characters are shown.
std::string Printable(absl::string_view text);

// Returns of a line that was overwritten by carriage returns the last state.
absl::string_view LastDrawn(absl::string_view line);

// Returns a line of a job's output as a terminal shows it: of text that was overwritten by carriage
// returns the last state, colours (SGR sequences) kept if `colours`, other control and escape
// sequences left out.
std::string TerminalLine(absl::string_view text, bool colours = true);

}  // namespace tutti::client
