#include "platform/launch/stacks/stack_tool.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/deadline.h"
#include "base/process/command.h"
#include "base/status.h"
#include "platform/launch/process/own_children.h"
#include "platform/launch/stacks/process_look.h"

namespace tutti::launch {
namespace {

constexpr int kLowest = 19;                           // of priorities
constexpr absl::Duration kToGoOn = absl::Seconds(5);  // for a process that was stopped
constexpr absl::Duration kBetweenStates = absl::Milliseconds(5);

// In the child, before the program begins. Where Linux refuses one of these it runs all the same.
int Yield() {
  ::setpriority(PRIO_PROCESS, 0, kLowest);
  const rlimit none = {0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  const int score = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (score < 0) return 0;
  const ssize_t written = ::write(score, "1000", 4);
  (void)written;
  ::close(score);
  return 0;
}

std::map<std::string, std::string> EnvironmentOfTools() {
  std::map<std::string, std::string> environment = {{"LANG", "C.UTF-8"}};
  if (const char* path = std::getenv("PATH")) environment["PATH"] = path;
  return environment;
}

absl::string_view FirstLine(absl::string_view text) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!line.empty()) return line.substr(0, 500);
  }
  return "";
}

bool IsStoppedState(std::optional<char> state) { return state == 'T' || state == 't'; }

// A tracer that is killed leaves a process whose SIGSTOP has come by then stopped, and one whose
// SIGSTOP has not come yet is going to be: SIGCONT undoes both.
bool LetGoOn(pid_t pid, uint64_t began, bool was_killed) {
  const base::Deadline deadline = base::Deadline::After(kToGoOn);
  std::optional<char> state = StateOf(pid, began);
  if (was_killed && state) ::kill(pid, SIGCONT);
  while (IsStoppedState(state = StateOf(pid, began)) && !deadline.Expired()) {
    ::kill(pid, SIGCONT);
    ::poll(nullptr, 0, static_cast<int>(absl::ToInt64Milliseconds(kBetweenStates)));
  }
  return !IsStoppedState(state);
}

}  // namespace

absl::StatusOr<std::string> RunTool(std::vector<std::string> arguments, const ToolLimits& limits,
                                    const std::atomic<bool>& cancelled) {
  if (cancelled) return absl::CancelledError("the job is ending");
  const std::string name = arguments.front().substr(arguments.front().rfind('/') + 1);
  base::ChildOptions options;
  options.arguments = std::move(arguments);
  options.environment = EnvironmentOfTools();
  options.directory = "/";
  options.before_exec = Yield;
  OwnChild child;
  const auto ended =
      base::RunCommand(std::move(options), "", base::Deadline::After(limits.time), limits.output,
                       &cancelled, [&child](pid_t pid) { child.Set(pid); });
  if (absl::IsDeadlineExceeded(ended.status())) {
    return absl::DeadlineExceededError(absl::StrCat(
        name, " did not end within ", absl::FormatDuration(limits.time), " and was killed"));
  }
  if (!ended.ok()) return base::Annotate(ended.status(), name);
  if (!ended->exit.ok()) {
    const absl::string_view said = FirstLine(ended->err.empty() ? ended->out : ended->err);
    return absl::UnknownError(
        absl::StrCat(name, " ended with ", ended->exit.ToString(), said.empty() ? "" : ": ", said));
  }
  return ended->out;
}

absl::StatusOr<std::string> RunStoppingTool(std::vector<std::string> arguments, pid_t pid,
                                            uint64_t began, const ToolLimits& limits,
                                            const std::atomic<bool>& cancelled) {
  const std::optional<char> state = StateOf(pid, began);
  if (!state) return absl::NotFoundError("it has ended");
  if (IsStoppedState(state)) {
    return absl::FailedPreconditionError("it is stopped already, as by SIGSTOP or a debugger");
  }
  auto said = RunTool(std::move(arguments), limits, cancelled);
  const bool was_killed =
      absl::IsDeadlineExceeded(said.status()) || absl::IsCancelled(said.status());
  if (!LetGoOn(pid, began, was_killed || !said.ok())) {
    return absl::InternalError(absl::StrCat("it stays stopped: kill -CONT ", pid));
  }
  return said;
}

}  // namespace tutti::launch
