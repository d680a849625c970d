// Runs the programs that say how a node is: the site's own check, and what others of this room ask.
// Thread-safe.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/process/command.h"
#include "platform/health/node_check.h"
#include "spec/types/node_checks.h"

namespace tutti::health {

// Runs the site's check in a shell. Ill: it ends with another code than 0, or not in time; its
// first line says why. Unknown: it could not be run. Once `abandoned` is set it is killed.
NodeCheck CheckByProgram(const spec::NodeChecks& checks, const std::atomic<bool>& abandoned);

// Runs a program with this process's environment. DeadlineExceeded if it is killed at the limit,
// Cancelled if `abandoned` was set, NotFound if it is not there.
absl::StatusOr<base::CommandResult> RunWithin(std::vector<std::string> arguments,
                                              absl::Duration limit,
                                              const std::atomic<bool>& abandoned);

// Returns the first line that says something, fit for a table.
std::string FirstWords(absl::string_view text);
// Returns that of what a program has printed, and of its errors if it has printed nothing.
std::string WordsOf(const base::CommandResult& result);

}  // namespace tutti::health
