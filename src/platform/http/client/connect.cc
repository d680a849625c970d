#include "platform/http/client/connect.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/status.h"
#include "platform/http/client/resolve.h"

namespace tutti::http {
namespace {

// A connected descriptor, or the errno of the attempt.
absl::StatusOr<base::UniqueFd> ConnectOnce(const addrinfo& to, int cancel_fd,
                                           base::Deadline deadline) {
  base::UniqueFd fd(::socket(to.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return base::ErrnoStatus("socket");
  if (::connect(fd.get(), to.ai_addr, to.ai_addrlen) == 0) return fd;
  if (errno != EINPROGRESS) return base::ErrnoStatus("connect");
  pollfd waiting[2] = {{fd.get(), POLLOUT, 0}, {cancel_fd, POLLIN, 0}};
  int ready;
  do {
    ready = ::poll(waiting, 2, deadline.RemainingMillis());
  } while (ready < 0 && errno == EINTR);
  if (ready == 0) return absl::DeadlineExceededError("no answer to the connection in time");
  if (waiting[1].revents != 0) return absl::CancelledError("cancelled");
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return base::ErrnoStatus("connect", error);
  return fd;
}

}  // namespace

absl::StatusOr<base::UniqueFd> ConnectTo(const Authority& to, int cancel_fd,
                                         base::Deadline deadline) {
  TUTTI_ASSIGN_OR_RETURN(const Addresses found, Resolve(to, cancel_fd, deadline));
  absl::Status last = absl::UnavailableError("no address");
  for (const addrinfo* address = found.get(); address != nullptr; address = address->ai_next) {
    absl::StatusOr<base::UniqueFd> fd = ConnectOnce(*address, cancel_fd, deadline);
    if (fd.ok() || absl::IsCancelled(fd.status())) return fd;
    last = fd.status();
  }
  return absl::UnavailableError(last.message());
}

}  // namespace tutti::http
