// Runs a program that reads the stacks of another process, so that neither that process nor the
// node is worse off for it, whatever the program does:
//
//   it is a child that is not one of the job's (process/own_children.h), dies with this process,
//   runs at the lowest priority and is the first to go where memory runs out; it is killed with all
//   that it has started at its limit and once `cancelled` is set; of what it prints a part is kept;
//   a process that it may have stopped is looked at afterwards, and set going again.
//
// Thread-safe; not for the thread of NodeProcesses.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tutti::launch {

struct ToolLimits {
  absl::Duration time;
  size_t output = 256 << 10;  // bytes that are kept: from the beginning, and from the end
};

// Returns what `arguments` prints, a program that stops nobody. Errors: DeadlineExceeded where it
// was killed at its limit; Cancelled; what it says itself, if it fails.
absl::StatusOr<std::string> RunTool(std::vector<std::string> arguments, const ToolLimits& limits,
                                    const std::atomic<bool>& cancelled);

// Does the same with a program that stops process `pid`, which began then, while it reads it.
// FailedPrecondition if somebody else has stopped it: it stays as it is. Internal, if it stays
// stopped in spite of everything.
absl::StatusOr<std::string> RunStoppingTool(std::vector<std::string> arguments, pid_t pid,
                                            uint64_t began, const ToolLimits& limits,
                                            const std::atomic<bool>& cancelled);

}  // namespace tutti::launch
