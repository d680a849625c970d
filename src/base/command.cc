#include "base/command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace tutti::base {
namespace {

struct OutputPipe {
  UniqueFd read, write;
};

absl::StatusOr<OutputPipe> MakeOutputPipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus("pipe");
  return OutputPipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// A file in memory: however long it is, nobody waits for the program to read it.
absl::StatusOr<UniqueFd> InputOf(absl::string_view input) {
  UniqueFd file(::memfd_create("input", MFD_CLOEXEC));
  if (!file.valid()) return ErrnoStatus("memfd_create");
  TUTTI_RETURN_IF_ERROR(WriteAll(file.get(), input, "a program's input"));
  if (::lseek(file.get(), 0, SEEK_SET) != 0) return ErrnoStatus("a program's input");
  return file;
}

// Takes what is there; false at the end.
bool TakeOutput(int fd, std::string& text) {
  std::array<char, 65536> buffer;
  const ssize_t n = ::read(fd, buffer.data(), buffer.size());
  if (n > 0) text.append(buffer.data(), n);
  return n > 0 || (n < 0 && errno == EINTR);
}

// Both streams to their ends. False at the deadline.
bool TakeOutputs(int out, int err, Deadline deadline, CommandResult& result) {
  std::array<pollfd, 2> streams = {pollfd{out, POLLIN, 0}, pollfd{err, POLLIN, 0}};
  while (streams[0].fd >= 0 || streams[1].fd >= 0) {
    if (deadline.Expired()) return false;
    if (::poll(streams.data(), streams.size(), deadline.RemainingMillis()) <= 0) continue;
    if (streams[0].revents != 0 && !TakeOutput(out, result.out)) streams[0].fd = -1;
    if (streams[1].revents != 0 && !TakeOutput(err, result.err)) streams[1].fd = -1;
  }
  return true;
}

}  // namespace

absl::StatusOr<CommandResult> RunCommand(ChildOptions options, absl::string_view input,
                                         Deadline deadline) {
  TUTTI_ASSIGN_OR_RETURN(OutputPipe out, MakeOutputPipe());
  TUTTI_ASSIGN_OR_RETURN(OutputPipe err, MakeOutputPipe());
  TUTTI_ASSIGN_OR_RETURN(const UniqueFd in, InputOf(input));
  options.stdin_fd = in.get();
  options.stdout_fd = out.write.get();
  options.stderr_fd = err.write.get();
  options.die_with_parent = true;
  const std::string name = options.arguments.empty() ? "" : options.arguments.front();
  TUTTI_ASSIGN_OR_RETURN(ChildProcess child, ChildProcess::Start(options));
  out.write.reset();
  err.write.reset();
  CommandResult result;
  const bool ended = TakeOutputs(out.read.get(), err.read.get(), deadline, result);
  const absl::StatusOr<ExitStatus> exit =
      ended ? child.Wait(deadline) : absl::DeadlineExceededError("");
  if (absl::IsDeadlineExceeded(exit.status())) {
    child.SignalGroup(SIGKILL).IgnoreError();
    child.Wait(Deadline::After(absl::Seconds(5))).IgnoreError();
    return absl::DeadlineExceededError(absl::StrCat(name, " did not end in time"));
  }
  TUTTI_RETURN_IF_ERROR(exit.status());
  result.exit = *exit;
  return result;
}

}  // namespace tutti::base
