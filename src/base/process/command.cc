#include "base/process/command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/file.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace tutti::base {
namespace {

constexpr int kBetweenLooks = 50;  // ms, at whether it is cancelled

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

// The head and the tail of a stream, however long it is.
class BoundedText {
 public:
  explicit BoundedText(size_t most) : half_(most / 2) {}

  void Add(absl::string_view bytes) {
    const size_t fits = std::min(bytes.size(), half_ - head_.size());
    head_.append(bytes.data(), fits);
    tail_.append(bytes.data() + fits, bytes.size() - fits);
    if (tail_.size() > 2 * half_) Shorten();
  }

  std::string Text() {
    Shorten();
    if (dropped_ == 0) return head_ + tail_;
    return absl::StrCat(head_, "\n[", dropped_, " bytes are left out here]\n", tail_);
  }

 private:
  void Shorten() {
    const size_t surplus = tail_.size() - std::min(tail_.size(), half_);
    tail_.erase(0, surplus);
    dropped_ += surplus;
  }

  const size_t half_;
  std::string head_, tail_;
  uint64_t dropped_ = 0;
};

// Takes what is there; false at the end.
bool TakeOutput(int fd, BoundedText& text) {
  std::array<char, 65536> buffer;
  const ssize_t n = ::read(fd, buffer.data(), buffer.size());
  if (n > 0) text.Add({buffer.data(), static_cast<size_t>(n)});
  return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

// Both streams to their ends. False at the deadline, or when it is cancelled.
bool TakeOutputs(int out, int err, Deadline deadline, const std::atomic<bool>* cancelled,
                 BoundedText& out_text, BoundedText& err_text) {
  std::array<pollfd, 2> streams = {pollfd{out, POLLIN, 0}, pollfd{err, POLLIN, 0}};
  while (streams[0].fd >= 0 || streams[1].fd >= 0) {
    if (deadline.Expired() || (cancelled != nullptr && *cancelled)) return false;
    const int limit = cancelled == nullptr ? INT_MAX : kBetweenLooks;
    const int wait = std::min(deadline.RemainingMillis(), limit);
    if (::poll(streams.data(), streams.size(), wait) <= 0) continue;
    if (streams[0].revents != 0 && !TakeOutput(out, out_text)) streams[0].fd = -1;
    if (streams[1].revents != 0 && !TakeOutput(err, err_text)) streams[1].fd = -1;
  }
  return true;
}

}  // namespace

absl::StatusOr<CommandResult> RunCommand(ChildOptions options, absl::string_view input,
                                         Deadline deadline, size_t most_output,
                                         const std::atomic<bool>* cancelled,
                                         const std::function<void(pid_t)>& began) {
  TUTTI_ASSIGN_OR_RETURN(OutputPipe out, MakeOutputPipe());
  TUTTI_ASSIGN_OR_RETURN(OutputPipe err, MakeOutputPipe());
  TUTTI_ASSIGN_OR_RETURN(const UniqueFd in, InputOf(input));
  options.stdin_fd = in.get();
  options.stdout_fd = out.write.get();
  options.stderr_fd = err.write.get();
  options.die_with_parent = true;
  const std::string name = options.arguments.empty() ? "" : options.arguments.front();
  TUTTI_ASSIGN_OR_RETURN(ChildProcess child, ChildProcess::Start(options));
  if (began) began(child.pid());
  out.write.reset();
  err.write.reset();
  BoundedText out_text(most_output), err_text(most_output);
  const bool ended =
      TakeOutputs(out.read.get(), err.read.get(), deadline, cancelled, out_text, err_text);
  const absl::StatusOr<ExitStatus> exit =
      ended ? child.Wait(deadline) : absl::DeadlineExceededError("");
  if (absl::IsDeadlineExceeded(exit.status())) {
    child.SignalGroup(SIGKILL).IgnoreError();
    child.Wait(Deadline::After(absl::Seconds(5))).IgnoreError();
    if (cancelled != nullptr && *cancelled) return absl::CancelledError(name);
    return absl::DeadlineExceededError(absl::StrCat(name, " did not end in time"));
  }
  TUTTI_RETURN_IF_ERROR(exit.status());
  return CommandResult{*exit, out_text.Text(), err_text.Text()};
}

std::string ShellQuoted(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

}  // namespace tutti::base
