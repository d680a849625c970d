// ChildProcess starts and ends another program. A child gets exactly the environment and
// descriptors it is given, is the leader of a process group of its own, and is waited for through a
// pidfd, so that a wait has a deadline and a reused process id is never signalled.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/deadline.h"
#include "base/unique_fd.h"

namespace tutti::base {

// How a process ended: an exit code, or the signal that killed it.
struct ExitStatus {
  int code = 0;    // meaningful when signal == 0
  int signal = 0;  // 0: exited by itself
  bool ok() const { return code == 0 && signal == 0; }
  // Returns "exit code 3", "signal 9 (SIGKILL)".
  std::string ToString() const;
};

// Returns why Linux would not start a program with `arguments` and `environment`, one of which is
// longer than it takes of one, and what to do: "the command has 140000 bytes, and Linux takes
// 131071: put it into a script". "" if none is; they may still be too long together.
std::string WhatIsTooLong(const std::vector<std::string>& arguments,
                          const std::map<std::string, std::string>& environment);

struct ChildOptions {
  std::vector<std::string> arguments;              // arguments[0] is the program; looked up in PATH
  std::map<std::string, std::string> environment;  // the whole of it; nothing is inherited
  std::filesystem::path directory;                 // empty: the parent's
  int stdin_fd = -1;                               // -1: /dev/null
  int stdout_fd = -1;                              // -1: the parent's
  int stderr_fd = -1;                              // -1: the parent's
  bool new_session = false;      // setsid: survives the end of the parent's terminal
  bool die_with_parent = false;  // SIGKILL when the thread that started it ends
  // Runs in the child between vfork and exec, in the parent's memory: may only call
  // async-signal-safe functions, and changes nothing that the parent reads. Returns 0 or an errno,
  // which Start reports. For namespaces, affinity and limits.
  std::function<int()> before_exec;
};

// Movable; destroying it neither waits nor kills. Thread-compatible.
class ChildProcess {
 public:
  // Starts it. Errors of chdir, before_exec and exec are reported here, with the program's name.
  static absl::StatusOr<ChildProcess> Start(const ChildOptions& options);

  pid_t pid() const { return pid_; }
  // Becomes readable when the process ends; for poll(2).
  int pidfd() const { return pidfd_.get(); }
  // Waits until it has ended; DeadlineExceeded if it still runs.
  absl::StatusOr<ExitStatus> Wait(Deadline deadline);
  // Sends the signal to the whole process group; OK if it has ended already.
  absl::Status SignalGroup(int signal);

 private:
  ChildProcess(pid_t pid, UniqueFd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}
  pid_t pid_;
  UniqueFd pidfd_;
  std::optional<ExitStatus> ended_;
};

// Returns this process's environment as a map.
std::map<std::string, std::string> CurrentEnvironment();

// Returns when process `pid` started, in clock ticks since boot (field 22 of /proc/PID/stat): with
// the pid it names a process for good. NotFound if there is none.
absl::StatusOr<uint64_t> ProcessStartTime(pid_t pid);

// Returns every live descendant of `root` (not itself), by /proc. With PR_SET_CHILD_SUBREAPER on
// `root` this includes children whose own parents have ended. What is below one of `leaves` is left
// out.
std::vector<pid_t> Descendants(pid_t root, const std::set<pid_t>& leaves = {});

// The same in steps, for who asks for several roots: a look at all processes of the machine takes
// long where there are many.
struct ProcessParent {
  pid_t pid = 0, parent = 0;
};
std::vector<ProcessParent> ProcessParents();
std::vector<pid_t> DescendantsAmong(const std::vector<ProcessParent>& processes, pid_t root,
                                    const std::set<pid_t>& leaves = {});

}  // namespace tutti::base
