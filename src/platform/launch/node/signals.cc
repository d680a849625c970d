#include "platform/launch/node/signals.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/status.h"

namespace tutti::launch {

absl::StatusOr<Signals> Signals::Block() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) sigaddset(&set, number);
  base::UniqueFd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return base::ErrnoStatus("signalfd");
  sigaddset(&set, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return Signals(std::move(fd));
}

bool Signals::StopIsPending() {
  sigset_t pending;
  return ::sigpending(&pending) == 0 &&
         (sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1);
}

std::optional<StopRequest> Signals::Take() {
  std::optional<StopRequest> request;
  signalfd_siginfo info;
  while (::read(fd_.get(), &info, sizeof info) == sizeof info) {
    if (info.ssi_signo != SIGTERM && info.ssi_signo != SIGINT) continue;
    request.emplace();
    if (info.ssi_code == SI_QUEUE && info.ssi_int >= 0) {
      request->grace = absl::Milliseconds(info.ssi_int);
    }
  }
  return request;
}

}  // namespace tutti::launch
