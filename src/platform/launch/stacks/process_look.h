// Reads what Linux tells of a process by /proc, which does not stop it. A process that waits for
// the kernel with its memory locked holds up who reads its command. Thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace tutti::launch {

struct ProcessFacts {
  uint64_t began = 0;   // with the number it names the process for good
  char state = '?';     // R, S, D, T (stopped), t (by who traces it) …
  std::string command;  // its arguments, with spaces between them
  bool is_python = false;
  bool is_contained = false;  // its files are others than this process's
  std::string path;           // where it looks for programs: beside its own one, then its PATH
};

// Returns nothing once the process has ended, be it that nobody has waited for it.
std::optional<ProcessFacts> LookAtProcess(pid_t pid);

// Returns its state now; nothing once it has ended, or if it is another than `began` says.
std::optional<char> StateOf(pid_t pid, uint64_t began);

// Returns a line for each thread: its name, its state and what it waits for in the kernel; with the
// stack there, where this user may read it. A long list is cut off.
std::string KernelStacks(pid_t pid);

// Finds a program that may be run in `path`, folders with ":" between them; "" if there is none.
std::string FindProgram(absl::string_view name, absl::string_view path);

}  // namespace tutti::launch
