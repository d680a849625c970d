#include "http/client/connect.h"

#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/threads/start_thread.h"

namespace tutti::http {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

// HostQuestion is shared by the resolver's thread and the caller; the last of them frees it. `done`
// becomes readable once the rest is filled in.
struct HostQuestion {
  explicit HostQuestion(const Authority& of) : host(of.host), port(absl::StrCat(of.port)) {}

  void Ask(int flags) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags;
    addrinfo* list = nullptr;
    failure = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &list);
    if (failure == 0) found.reset(list);
  }

  const std::string host, port;
  const base::UniqueFd done{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  int failure = 0;
  Addresses found;
};

absl::Status WaitFor(const HostQuestion& question, int cancel_fd, base::Deadline deadline) {
  while (true) {
    pollfd waiting[2] = {{question.done.get(), POLLIN, 0}, {cancel_fd, POLLIN, 0}};
    const int ready = ::poll(waiting, 2, deadline.RemainingMillis());
    if (ready < 0 && errno != EINTR) return base::ErrnoStatus("poll");
    if (ready > 0 && waiting[1].revents != 0) return absl::CancelledError("cancelled");
    if (ready > 0) return absl::OkStatus();
    if (ready == 0) {
      return absl::DeadlineExceededError(
          absl::StrCat("the name of host ", question.host, " was not found in time"));
    }
  }
}

// Resolves the host's addresses by a deadline: the system's resolver has none of its own and cannot
// be stopped, so a name is asked for on a thread that may be left behind. Unavailable if there is
// no such host; DeadlineExceeded; Cancelled when `cancel_fd` becomes readable.
absl::StatusOr<Addresses> Resolve(const Authority& of, int cancel_fd, base::Deadline deadline) {
  const auto question = std::make_shared<HostQuestion>(of);
  question->Ask(AI_NUMERICHOST);  // an address needs no resolver
  if (question->failure == 0) return std::move(question->found);
  std::thread asking = base::StartThread([question] {
    question->Ask(0);
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = ::write(question->done.get(), &one, sizeof one);
  });
  if (!asking.joinable()) {
    return absl::UnavailableError(
        absl::StrCat("cannot find host ", of.host, ": this machine has no room for a thread"));
  }
  asking.detach();
  TUTTI_RETURN_IF_ERROR(WaitFor(*question, cancel_fd, deadline));
  if (question->failure == 0) return std::move(question->found);
  return absl::UnavailableError(
      absl::StrCat("cannot find host ", of.host, ": ", ::gai_strerror(question->failure)));
}

// Returns a connected descriptor, or the errno of the attempt.
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
