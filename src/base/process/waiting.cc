#include "base/process/waiting.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/status.h"

namespace tutti::base {
namespace {

constexpr absl::Duration kLookAtFlagEvery = absl::Milliseconds(50);
constexpr absl::Duration kDying = absl::Seconds(10);

}  // namespace

absl::StatusOr<UniqueFd> LockFile(const std::filesystem::path& file,
                                  const std::atomic<bool>& cancelled) {
  TUTTI_ASSIGN_OR_RETURN(UniqueFd fd, Open(file, O_RDWR | O_CREAT));
  while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return ErrnoStatus(file.string());
    if (cancelled) return absl::CancelledError(absl::StrCat("stopped waiting for ", file.string()));
    absl::SleepFor(kLookAtFlagEvery);
  }
  return fd;
}

absl::StatusOr<ExitStatus> RunToEnd(const ChildOptions& options,
                                    const std::atomic<bool>& cancelled) {
  TUTTI_ASSIGN_OR_RETURN(ChildProcess child, ChildProcess::Start(options));
  while (true) {
    const auto ended = child.Wait(Deadline::After(kLookAtFlagEvery));
    if (ended.ok() || !absl::IsDeadlineExceeded(ended.status())) return ended;
    if (!cancelled) continue;
    TUTTI_RETURN_IF_ERROR(child.SignalGroup(SIGKILL));
    TUTTI_RETURN_IF_ERROR(child.Wait(Deadline::After(kDying)).status());
    return absl::CancelledError(absl::StrCat("stopped ", options.arguments[0]));
  }
}

}  // namespace tutti::base
