#include "runtime/comm/rendezvous/wire/stream_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/comm/rendezvous/wire/resolve_endpoint.h"

namespace tutti::comm {
namespace {

using base::ErrnoStatus;
using base::UniqueFd;

constexpr absl::Duration kQueueMayMove = absl::Milliseconds(1);

UniqueFd NewSocket(int family) {
  return UniqueFd(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

void SetOption(int fd, int level, int option, int value) {
  ::setsockopt(fd, level, option, &value, sizeof(value));
}

// Small messages leave at once; and after an outage a connection with little under way, as that of
// the heartbeats, tries again at even intervals and not at doubled ones (Linux' "thin" streams), so
// that an outage is not twice as long for it. On a Unix socket both fail harmlessly.
void MakePrompt(int fd) {
  SetOption(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  SetOption(fd, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, 1);
}

struct LocalAddress {
  sockaddr_un address = {};
  socklen_t length = 0;
};

LocalAddress Abstract(absl::string_view name) {
  LocalAddress local;
  local.address.sun_family = AF_UNIX;
  const size_t length = std::min(name.size(), sizeof(local.address.sun_path) - 1);
  std::memcpy(local.address.sun_path + 1, name.data(), length);  // a leading 0: no file
  local.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  return local;
}

absl::Status BindSource(int fd, const std::string& source, const Patience& patience) {
  if (source.empty()) return absl::OkStatus();
  TUTTI_ASSIGN_OR_RETURN(const auto from, Resolve({source, 0}, source, patience));
  SetOption(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
  if (::bind(fd, from.front().get(), from.front().length) != 0) {
    return ErrnoStatus(absl::StrCat("bind to this node's address ", source));
  }
  return absl::OkStatus();
}

// Retrying a connection to a port of the ephemeral range that nobody listens on can meet itself.
bool IsConnectedToItself(int fd) {
  sockaddr_storage own = {}, peer = {};
  socklen_t own_length = sizeof(own), peer_length = sizeof(peer);
  return ::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_length) == 0 &&
         ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_length) == 0 &&
         own_length == peer_length && std::memcmp(&own, &peer, own_length) == 0;
}

absl::Status FinishConnect(int fd, const sockaddr* address, socklen_t length,
                           const Patience& patience) {
  if (::connect(fd, address, length) == 0) return absl::OkStatus();
  if (errno != EINPROGRESS) return absl::UnavailableError(std::strerror(errno));
  TUTTI_RETURN_IF_ERROR(WaitFor(fd, POLLOUT, patience));
  int error = 0;
  socklen_t size = sizeof(error);
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return absl::UnavailableError(std::strerror(error));
  return absl::OkStatus();
}

absl::StatusOr<UniqueFd> ListenAt(const SocketAddress& address, absl::string_view what) {
  UniqueFd fd = NewSocket(address.family());
  if (!fd.valid()) return ErrnoStatus("socket");
  SetOption(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (::bind(fd.get(), address.get(), address.length) != 0 || ::listen(fd.get(), SOMAXCONN) != 0) {
    return ErrnoStatus(what);
  }
  return fd;
}

absl::StatusOr<UniqueFd> ConnectTo(const SocketAddress& address, const std::string& source,
                                   const Patience& patience) {
  UniqueFd fd = NewSocket(address.family());
  if (!fd.valid()) return ErrnoStatus("socket");
  TUTTI_RETURN_IF_ERROR(BindSource(fd.get(), source, patience));
  MakePrompt(fd.get());
  TUTTI_RETURN_IF_ERROR(FinishConnect(fd.get(), address.get(), address.length, patience));
  if (IsConnectedToItself(fd.get())) return absl::UnavailableError(std::strerror(ECONNREFUSED));
  return fd;
}

// Connecting a datagram socket sends nothing and asks the routing table.
absl::StatusOr<std::string> OwnAddressToward(const SocketAddress& address, absl::string_view what) {
  const UniqueFd fd(::socket(address.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage own = {};
  socklen_t length = sizeof(own);
  char text[NI_MAXHOST];
  if (!fd.valid() || ::connect(fd.get(), address.get(), address.length) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own), &length) != 0 ||
      ::getnameinfo(reinterpret_cast<sockaddr*>(&own), length, text, sizeof(text), nullptr, 0,
                    NI_NUMERICHOST) != 0) {
    return ErrnoStatus(what);
  }
  return std::string(text);
}

bool WouldBlock() { return errno == EAGAIN || errno == EWOULDBLOCK; }

}  // namespace

absl::Status ConnectionClosed() { return absl::UnavailableError("connection closed"); }

std::string Endpoint::ToString() const {
  const bool v6 = host.find(':') != std::string::npos;
  return v6 ? absl::StrCat("[", host, "]:", port) : absl::StrCat(host, ":", port);
}

absl::Status WaitFor(int fd, short events, const Patience& patience) {
  while (true) {
    pollfd polled[2] = {{fd, events, 0}, {patience.interrupt, POLLIN, 0}};
    const int ready = ::poll(polled, 2, patience.deadline.RemainingMillis());
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return ErrnoStatus("poll");
    if (polled[1].revents != 0) return absl::CancelledError("interrupted");
    if (polled[0].revents != 0) return absl::OkStatus();
    if (patience.deadline.Expired()) return absl::DeadlineExceededError("no answer in time");
  }
}

absl::Status Pause(absl::Duration pause, const Patience& patience) {
  const absl::Status waited =
      WaitFor(-1, 0,
              {base::Deadline::Sooner(patience.deadline, base::Deadline::After(pause)),
               patience.interrupt});
  if (absl::IsDeadlineExceeded(waited) && !patience.deadline.Expired()) return absl::OkStatus();
  return waited;
}

absl::StatusOr<UniqueFd> Listen(const Endpoint& at, const std::string& like,
                                const Patience& patience) {
  TUTTI_ASSIGN_OR_RETURN(const auto addresses, Resolve(at, like, patience));
  const std::string what = absl::StrCat("listen on ", at.ToString());
  absl::StatusOr<UniqueFd> fd = absl::UnknownError("");
  for (size_t i = 0; i < addresses.size() && !fd.ok(); ++i) fd = ListenAt(addresses[i], what);
  return fd;
}

absl::StatusOr<UniqueFd> ListenLocal(absl::string_view name) {
  UniqueFd fd = NewSocket(AF_UNIX);
  if (!fd.valid()) return ErrnoStatus("socket");
  const LocalAddress local = Abstract(name);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&local.address), local.length) != 0 ||
      ::listen(fd.get(), SOMAXCONN) != 0) {
    return ErrnoStatus(absl::StrCat("listen on unix socket @", name));
  }
  return fd;
}

absl::StatusOr<int> PortOf(int socket) {
  sockaddr_storage address = {};
  socklen_t length = sizeof(address);
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return ErrnoStatus("getsockname");
  }
  if (address.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

absl::StatusOr<std::string> AddressToward(const Endpoint& to, const Patience& patience) {
  TUTTI_ASSIGN_OR_RETURN(const auto addresses, Resolve(to, "", patience));
  const std::string what = absl::StrCat("find the way to ", to.ToString());
  absl::StatusOr<std::string> own = absl::UnknownError("");
  for (size_t i = 0; i < addresses.size() && !own.ok(); ++i) {
    own = OwnAddressToward(addresses[i], what);
  }
  return own;
}

absl::StatusOr<UniqueFd> Accept(int listener, const Patience& patience) {
  while (true) {
    UniqueFd fd(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd.valid()) {
      MakePrompt(fd.get());
      return fd;
    }
    // A connection that ended while it was in the queue is no fault of the listener.
    if (errno != EINTR && errno != ECONNABORTED && !WouldBlock()) return ErrnoStatus("accept");
    TUTTI_RETURN_IF_ERROR(WaitFor(listener, POLLIN, patience));
  }
}

absl::StatusOr<UniqueFd> Connect(const Endpoint& to, const std::string& source,
                                 const Patience& patience) {
  TUTTI_ASSIGN_OR_RETURN(const auto addresses, Resolve(to, source, patience));
  absl::StatusOr<UniqueFd> fd = absl::UnknownError("");
  for (size_t i = 0; i < addresses.size() && !fd.ok() && !absl::IsCancelled(fd.status()); ++i) {
    // An address where nobody answers leaves time for those after it.
    const size_t left = addresses.size() - i;
    const base::Deadline share =
        left == 1 ? patience.deadline : base::Deadline::After(patience.deadline.Remaining() / left);
    fd = ConnectTo(addresses[i], source, {share, patience.interrupt});
  }
  return fd;
}

absl::StatusOr<UniqueFd> ConnectLocal(absl::string_view name, const Patience& patience) {
  UniqueFd fd = NewSocket(AF_UNIX);
  if (!fd.valid()) return ErrnoStatus("socket");
  const LocalAddress local = Abstract(name);
  while (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&local.address), local.length) !=
         0) {
    // EAGAIN: the listener's queue is full.
    if (errno != EAGAIN && errno != EINTR) return absl::UnavailableError(std::strerror(errno));
    TUTTI_RETURN_IF_ERROR(Pause(kQueueMayMove, patience));
  }
  return fd;
}

absl::Status Send(int fd, absl::string_view bytes, const Patience& patience) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n >= 0) {
      bytes.remove_prefix(static_cast<size_t>(n));
    } else if (WouldBlock()) {
      TUTTI_RETURN_IF_ERROR(WaitFor(fd, POLLOUT, patience));
    } else if (errno != EINTR) {
      return ConnectionClosed();
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Receive(int fd, size_t bytes, const Patience& patience) {
  std::string received(bytes, '\0');
  size_t have = 0;
  while (have < bytes) {
    const ssize_t n = ::recv(fd, received.data() + have, bytes - have, 0);
    if (n == 0) return ConnectionClosed();
    if (n > 0) {
      have += static_cast<size_t>(n);
    } else if (WouldBlock()) {
      TUTTI_RETURN_IF_ERROR(WaitFor(fd, POLLIN, patience));
    } else if (errno != EINTR) {
      return ConnectionClosed();
    }
  }
  return received;
}

absl::Status SendMessage(int fd, const Message& message, const Patience& patience) {
  return Send(fd, Frame(message), patience);
}

absl::StatusOr<Message> ReceiveMessage(int fd, size_t longest, const Patience& patience) {
  TUTTI_ASSIGN_OR_RETURN(const std::string prefix, Receive(fd, 4, patience));
  size_t length = 0;
  for (int i = 3; i >= 0; --i) length = length << 8 | static_cast<uint8_t>(prefix[i]);
  if (length > longest) {
    return absl::InvalidArgumentError(absl::StrCat("a message of ", length, " bytes"));
  }
  TUTTI_ASSIGN_OR_RETURN(const std::string body, Receive(fd, length, patience));
  return Read(body);
}

bool IsClosed(int fd) {
  char byte;
  const ssize_t n = ::recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return n == 0 || (n < 0 && !WouldBlock() && errno != EINTR);
}

}  // namespace tutti::comm
