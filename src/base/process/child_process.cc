#include "base/process/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/machine/machine.h"
#include "base/process/closed_in_children.h"
#include "base/status.h"

extern char** environ;

namespace tutti::base {
namespace {

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& s : strings) pointers.push_back(s.data());
  pointers.push_back(nullptr);
  return pointers;
}

// How many bytes the kernel takes of one argument or variable, its final zero included
// (MAX_ARG_STRLEN).
constexpr size_t kLongestString = 32 * 4096;

struct ChildPlan {
  const char* program;
  char** arguments;
  char** environment;
  const ChildOptions* options;
  int error_fd;
  pid_t parent;
};

// 0, or the errno of the first step that failed. Runs between vfork and exec, in the parent's
// memory.
int SetUpChild(const ChildPlan& plan) {
  const ChildOptions& options = *plan.options;
  ClosedInChildren::CloseAllInChild();
  if (options.new_session ? ::setsid() < 0 : ::setpgid(0, 0) != 0) return errno;
  if (options.die_with_parent) {
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return errno;
    if (::getppid() != plan.parent) return ESRCH;  // the parent ended before the prctl
  }
  const int null_fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (options.stdin_fd < 0 && null_fd < 0) return errno;
  if (::dup2(options.stdin_fd >= 0 ? options.stdin_fd : null_fd, 0) < 0) return errno;
  if (options.stdout_fd >= 0 && ::dup2(options.stdout_fd, 1) < 0) return errno;
  if (options.stderr_fd >= 0 && ::dup2(options.stderr_fd, 2) < 0) return errno;
  if (!options.directory.empty() && ::chdir(options.directory.c_str()) != 0) return errno;
  for (const int number : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGCHLD}) ::signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  return options.before_exec ? options.before_exec() : 0;
}

[[noreturn]] void RunChild(const ChildPlan& plan) {
  int error = SetUpChild(plan);
  if (error == 0) {
    ::execve(plan.program, plan.arguments, plan.environment);
    error = errno;
  }
  [[maybe_unused]] const ssize_t written = ::write(plan.error_fd, &error, sizeof error);
  ::_exit(127);
}

// A copy of the parent's page tables, as fork makes it, takes longer than all else here, and its
// other threads pay for it with a fault at each page that they write to next. No handler of the
// parent's may run in the child: signals wait until it has set them up.
pid_t ForkInParentsMemory(const ChildPlan& plan) {
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::vfork();
  if (pid == 0) RunChild(plan);
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return pid;
}

}  // namespace

std::string WhatIsTooLong(const std::vector<std::string>& arguments,
                          const std::map<std::string, std::string>& environment) {
  for (const auto& [key, value] : environment) {
    const size_t size = key.size() + 1 + value.size();
    if (size < kLongestString) continue;
    return absl::StrCat("variable ", key, " has ", size, " bytes, and Linux takes ",
                        kLongestString - 1, ": put it into a file");
  }
  for (const std::string& argument : arguments) {
    if (argument.size() < kLongestString) continue;
    return absl::StrCat("the command has ", argument.size(), " bytes, and Linux takes ",
                        kLongestString - 1, ": put it into a script");
  }
  return "";
}

std::string ExitStatus::ToString() const {
  if (signal == 0) return absl::StrCat("exit code ", code);
  const char* name = ::sigabbrev_np(signal);
  return name == nullptr ? absl::StrCat("signal ", signal)
                         : absl::StrCat("signal ", signal, " (SIG", name, ")");
}

absl::StatusOr<ChildProcess> ChildProcess::Start(const ChildOptions& options) {
  if (options.arguments.empty()) return absl::InvalidArgumentError("no program to start");
  TUTTI_ASSIGN_OR_RETURN(const std::string program,
                         FindProgram(options.arguments[0], options.environment));
  std::vector<std::string> arguments = options.arguments;
  std::vector<std::string> variables;
  for (const auto& [key, value] : options.environment) {
    variables.push_back(absl::StrCat(key, "=", value));
  }
  const std::vector<char*> argv = Pointers(arguments);
  const std::vector<char*> envp = Pointers(variables);

  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus("pipe");
  UniqueFd error_out(ends[0]);
  UniqueFd error_in(ends[1]);
  const ChildPlan plan{program.c_str(),
                       const_cast<char**>(argv.data()),
                       const_cast<char**>(envp.data()),
                       &options,
                       error_in.get(),
                       ::getpid()};
  const pid_t pid = ForkInParentsMemory(plan);
  if (pid < 0) return ErrnoStatus(absl::StrCat("fork for ", program));

  error_in.reset();
  int error = 0;
  ssize_t n;
  do {
    n = ::read(error_out.get(), &error, sizeof error);
  } while (n < 0 && errno == EINTR);
  if (n == sizeof error) {  // exec closes the pipe; a number in it is a failure before that
    ::waitpid(pid, nullptr, 0);
    const absl::Status status = ErrnoStatus(absl::StrCat("start ", program), error);
    if (error != E2BIG) return status;
    const std::string which = WhatIsTooLong(options.arguments, options.environment);
    return absl::Status(status.code(),
                        absl::StrCat(status.message(), which.empty() ? "" : ": ", which));
  }
  UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd.valid()) return ErrnoStatus(absl::StrCat("pidfd_open for ", program));
  return ChildProcess(pid, std::move(pidfd));
}

absl::StatusOr<ExitStatus> ChildProcess::Wait(Deadline deadline) {
  while (!ended_.has_value()) {
    pollfd waiting{pidfd_.get(), POLLIN, 0};
    const int ready = ::poll(&waiting, 1, deadline.RemainingMillis());
    if (ready < 0 && errno != EINTR) return ErrnoStatus("poll");
    if (ready > 0) {
      int status = 0;
      pid_t reaped;
      do {
        reaped = ::waitpid(pid_, &status, 0);
      } while (reaped < 0 && errno == EINTR);
      if (reaped < 0) return ErrnoStatus(absl::StrCat("waitpid ", pid_));
      ended_ = ExitStatus{WIFEXITED(status) ? WEXITSTATUS(status) : 0,
                          WIFSIGNALED(status) ? WTERMSIG(status) : 0};
    } else if (deadline.Expired()) {
      return absl::DeadlineExceededError(absl::StrCat("process ", pid_, " still runs"));
    }
  }
  return *ended_;
}

absl::Status ChildProcess::SignalGroup(int signal) {
  if (ended_.has_value()) return absl::OkStatus();
  if (::kill(-pid_, signal) != 0 && errno != ESRCH) {
    return ErrnoStatus(absl::StrCat("kill process group ", pid_));
  }
  return absl::OkStatus();
}

std::map<std::string, std::string> CurrentEnvironment() {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::pair<std::string, std::string> pair =
        absl::StrSplit(*entry, absl::MaxSplits('=', 1));
    variables.insert(pair);
  }
  return variables;
}

namespace {

// The fields of /proc/PID/stat from the third on; the second, the name, may hold spaces.
absl::StatusOr<std::vector<std::string>> StatFields(pid_t pid) {
  TUTTI_ASSIGN_OR_RETURN(const std::string text, ReadFile(absl::StrCat("/proc/", pid, "/stat")));
  const size_t after_name = text.rfind(')');
  if (after_name == std::string::npos) return absl::InternalError("unreadable /proc stat");
  return absl::StrSplit(text.substr(after_name + 2), ' ');
}

}  // namespace

absl::StatusOr<uint64_t> ProcessStartTime(pid_t pid) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<std::string> fields, StatFields(pid));
  uint64_t ticks = 0;
  if (fields.size() < 20 || !absl::SimpleAtoi(fields[19], &ticks)) {
    return absl::InternalError("unreadable /proc stat");
  }
  return ticks;
}

std::vector<ProcessParent> ProcessParents() {
  std::vector<ProcessParent> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    ProcessParent process;
    if (!absl::SimpleAtoi(entry.path().filename().native(), &process.pid)) continue;
    const auto text = ReadFile(absl::StrCat("/proc/", process.pid, "/stat"));
    const size_t after_name = text.ok() ? text->rfind(')') : std::string::npos;
    if (after_name == std::string::npos) continue;
    const std::vector<absl::string_view> fields =
        absl::StrSplit(absl::string_view(*text).substr(after_name + 2), absl::MaxSplits(' ', 2));
    // A zombie (state Z) has ended; it only waits to be reaped.
    if (fields.size() < 2 || fields[0] == "Z") continue;
    if (absl::SimpleAtoi(fields[1], &process.parent)) found.push_back(process);
  }
  return found;
}

std::vector<pid_t> DescendantsAmong(const std::vector<ProcessParent>& processes, pid_t root,
                                    const std::set<pid_t>& leaves) {
  std::vector<pid_t> found;
  std::vector<pid_t> frontier = {root};
  while (!frontier.empty()) {
    const pid_t parent = frontier.back();
    frontier.pop_back();
    for (const ProcessParent& process : processes) {
      if (process.parent != parent) continue;
      found.push_back(process.pid);
      if (!leaves.contains(process.pid)) frontier.push_back(process.pid);
    }
  }
  return found;
}

std::vector<pid_t> Descendants(pid_t root, const std::set<pid_t>& leaves) {
  return DescendantsAmong(ProcessParents(), root, leaves);
}

}  // namespace tutti::base
