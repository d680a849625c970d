#include "platform/file_server/server_process.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tutti::file_server {
namespace {

constexpr absl::Duration kPatienceOfKill = absl::Seconds(10);

// Waits until the process has ended; false if it has not by the deadline.
bool Ended(int pidfd, base::Deadline deadline) {
  pollfd ready = {.fd = pidfd, .events = POLLIN, .revents = 0};
  while (true) {
    const auto left =
        absl::ToInt64Milliseconds(std::max(deadline.Remaining(), absl::ZeroDuration()));
    const int n = ::poll(&ready, 1, static_cast<int>(std::min<int64_t>(left, 60'000)));
    if (n > 0) return true;
    if (n < 0 && errno != EINTR) return true;
    if (n == 0 && deadline.Expired()) return false;
  }
}

base::Deadline Now() { return base::Deadline::After(absl::ZeroDuration()); }

}  // namespace

absl::StatusOr<ServerProcess> ServerProcess::Start(const base::ChildOptions& options) {
  TUTTI_ASSIGN_OR_RETURN(base::ChildProcess child, base::ChildProcess::Start(options));
  TUTTI_ASSIGN_OR_RETURN(const uint64_t start_time, base::ProcessStartTime(child.pid()));
  ServerProcess process(child.pid(), start_time, base::UniqueFd());
  process.child_ = std::move(child);
  return process;
}

// The descriptor first: what it names is looked at then, and no other process of that id.
std::optional<ServerProcess> ServerProcess::Find(pid_t pid, uint64_t start_time) {
  if (pid <= 0) return std::nullopt;
  base::UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (pidfd.get() < 0) return std::nullopt;
  const auto started = base::ProcessStartTime(pid);
  if (!started.ok() || *started != start_time) return std::nullopt;
  ServerProcess process(pid, start_time, std::move(pidfd));
  if (!process.IsAlive()) return std::nullopt;
  return process;
}

bool ServerProcess::IsAlive() {
  if (child_) return absl::IsDeadlineExceeded(child_->Wait(Now()).status());
  return !Ended(pidfd_.get(), Now());
}

std::string ServerProcess::HowItEnded() {
  if (!child_) return "";
  const auto ended = child_->Wait(Now());
  return ended.ok() ? ended->ToString() : "";
}

absl::Status ServerProcess::End(base::Deadline deadline) {
  const int pidfd = child_ ? child_->pidfd() : pidfd_.get();
  for (const int signal : {SIGTERM, SIGKILL}) {
    if (!IsAlive()) return absl::OkStatus();
    if (::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0) != 0 && errno != ESRCH) {
      return base::ErrnoStatus(absl::StrCat("end process ", pid_));
    }
    if (Ended(pidfd, signal == SIGTERM ? deadline : base::Deadline::After(kPatienceOfKill))) {
      IsAlive();  // takes a child's status
      return absl::OkStatus();
    }
  }
  return absl::DeadlineExceededError(absl::StrCat("process ", pid_, " does not end"));
}

}  // namespace tutti::file_server
