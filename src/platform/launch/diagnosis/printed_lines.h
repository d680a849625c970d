// Splits a program's output into plain lines (no colours, no progress bars) and tells what kind of
// line each one is: an exception, an error, a warning, a starter's message. Pure functions. Inside
// the room launch only.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tutti::launch {

using Lines = std::vector<std::string>;

struct Printed {
  Lines lines;  // all, in their order
  std::vector<Lines>
      ranks;     // those that PyTorch printed with "[rank1]: ", by rank, the first first
  Lines others;  // the rest, in their order
};

// Splits output into lines, without terminal colours, former states of lines that were drawn over
// (progress bars), empty lines and PyTorch's "[rank1]: ".
Printed LinesOf(absl::string_view text);

// Returns whether `line` looks like "ValueError: text", "torch.cuda.OutOfMemoryError: …",
// "KeyboardInterrupt".
bool LooksLikeException(absl::string_view line);

// Returns whether `line` is one of a log or of a shell, which goes on with nothing that was printed
// before: "[W1120 …", "2026-11-20 12:00:00…", "INFO: …", "bash: line 3: …".
bool BeginsAnew(absl::string_view line);

// Returns whether `line` is as "rm: cannot remove 'x': No such file or directory", what a program
// says of its own failure, begun by its name.
bool IsOfAnotherProgram(absl::string_view line);

// Returns whether it is a record of an error in the form of Python's module logging: "ERROR:root:no
// data".
bool IsALoggedError(absl::string_view line);

// Returns whether `line` speaks of what was passed over.
bool IsAWarning(absl::string_view line);

// Returns whether `line` speaks of a failure, and not of one that was passed over (a warning).
bool SaysError(absl::string_view line);

// Returns whether `line` says so among a program's results: with a log's level, as its first word
// or as what a program says of its own failure ("train.py: error: …", "error reading x"), and is no
// measure ("error: 0.3").
bool SaysErrorAmongResults(absl::string_view line);

// Returns whether that is in a log's words for what ends a program: "FATAL: …", "… CRITICAL …".
bool SaysFatal(absl::string_view line);

// Returns whether `line` is what a starter of processes says when one of them has failed: torchrun,
// accelerate, mpirun's wrappers. The process's own exception or error, printed before, says why.
bool IsOfAStarter(absl::string_view line);

}  // namespace tutti::launch
