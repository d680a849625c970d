// Running another program to its end with what it says in memory: for tools whose answer is read.
// Thread-safe.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/child_process.h"
#include "base/deadline.h"

namespace tutti::base {

struct CommandResult {
  ExitStatus exit;
  std::string out, err;
};

// Starts `options` (whose descriptors are set here), gives it `input` to read and waits for its end
// and that of its output. DeadlineExceeded: it was killed with its process group, and may have done
// its work. Errors of starting it are those of ChildProcess::Start.
absl::StatusOr<CommandResult> RunCommand(ChildOptions options, absl::string_view input,
                                         Deadline deadline);

}  // namespace tutti::base
