// Runs another program to its end and keeps what it prints in memory, for tools whose answer is
// read; also quotes words for a shell. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/deadline.h"
#include "base/process/child_process.h"

namespace tutti::base {

struct CommandResult {
  ExitStatus exit;
  std::string out, err;  // where bytes are left out, a line between head and tail says how many
};

// How many bytes are kept of each stream: half of them from the beginning, half from the end.
inline constexpr size_t kMostCommandOutput = 4 << 20;

// Starts `options` (whose descriptors are set here), gives it `input` to read and waits for its end
// and that of its output. DeadlineExceeded: it was killed with its process group, and may have done
// its work. Cancelled: so it was since another thread had set `cancelled`, which is looked at 20
// times a second. `began` is told its number once it runs. Errors of starting it are those of
// ChildProcess::Start.
absl::StatusOr<CommandResult> RunCommand(ChildOptions options, absl::string_view input,
                                         Deadline deadline, size_t most_output = kMostCommandOutput,
                                         const std::atomic<bool>* cancelled = nullptr,
                                         const std::function<void(pid_t)>& began = nullptr);

// Returns one word of a POSIX shell's, whatever is in it.
std::string ShellQuoted(absl::string_view text);

}  // namespace tutti::base
