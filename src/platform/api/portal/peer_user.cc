#include "platform/api/portal/peer_user.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "absl/status/status.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "http/socket_name.h"

namespace tutti::api {
namespace {

using http::SocketName;

void Put(const SocketName& name, __be32* address, __be16* port) {
  *port = htons(static_cast<uint16_t>(http::PortOf(name)));
  if (name.storage.ss_family == AF_INET6) {
    std::memcpy(address, &reinterpret_cast<const sockaddr_in6&>(name.storage).sin6_addr, 16);
  } else {
    std::memcpy(address, &reinterpret_cast<const sockaddr_in&>(name.storage).sin_addr, 4);
  }
}

// Asks for the socket that connects `from` with `to`; nothing where the kernel answers none.
std::optional<inet_diag_msg> Diagnose(const SocketName& from, const SocketName& to) {
  struct {
    nlmsghdr header = {};
    inet_diag_req_v2 question = {};
  } ask;
  inet_diag_sockid& id = ask.question.id;
  Put(from, id.idiag_src, &id.idiag_sport);
  Put(to, id.idiag_dst, &id.idiag_dport);
  id.idiag_cookie[0] = id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  ask.header.nlmsg_len = sizeof ask;
  ask.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  ask.header.nlmsg_flags = NLM_F_REQUEST;
  ask.question.sdiag_family = static_cast<uint8_t>(from.storage.ss_family);
  ask.question.sdiag_protocol = IPPROTO_TCP;
  ask.question.idiag_states = ~0u;
  const base::UniqueFd socket(
      ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG));
  if (socket.get() < 0 || ::send(socket.get(), &ask, sizeof ask, 0) != sizeof ask) {
    return std::nullopt;
  }
  // The kernel has answered by the time at which send returns.
  alignas(nlmsghdr) char answer[4096];
  const ssize_t size = ::recv(socket.get(), answer, sizeof answer, 0);
  if (size < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(inet_diag_msg)))) return std::nullopt;
  nlmsghdr header;
  std::memcpy(&header, answer, sizeof header);
  if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY) return std::nullopt;
  inet_diag_msg found;
  std::memcpy(&found, answer + NLMSG_HDRLEN, sizeof found);
  // A question about a socket that is gone may be answered by one that listens there.
  if (found.id.idiag_dport != id.idiag_dport || found.id.idiag_sport != id.idiag_sport) {
    return std::nullopt;
  }
  return found;
}

}  // namespace

absl::StatusOr<PeerUser> UserOfPeer(const http::Request& request) {
  const auto peer = http::SocketNameOf(request.peer), local = http::SocketNameOf(request.local);
  const auto refused = absl::UnauthenticatedError(
      "the kernel does not say whose process asks: it has closed its end of the connection, or "
      "this kernel does not answer sock_diag");
  if (!peer || !local) return refused;
  const auto found = Diagnose(*peer, *local);
  if (found && found->idiag_state == TCP_ESTABLISHED && found->idiag_inode != 0) {
    return found->idiag_uid;
  }
  if (http::IsOfThisMachine(http::AddressOf(*peer))) return refused;
  return std::nullopt;
}

absl::Status CheckPeersAreKnown() {
  const auto any_port = http::SocketNameOf("127.0.0.1", 0);
  const base::UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const base::UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::bind(listener.get(), any_port->address(), any_port->size) != 0 ||
      ::listen(listener.get(), 1) != 0) {
    return base::ErrnoStatus("listen on 127.0.0.1");
  }
  const SocketName there = http::OwnName(listener.get());
  if (::connect(client.get(), there.address(), there.size) != 0) {
    return base::ErrnoStatus("connect to 127.0.0.1");
  }
  const http::Request request{.peer = http::TextOf(http::OwnName(client.get())),
                              .local = http::TextOf(there)};
  if (const auto user = UserOfPeer(request); user.ok() && *user == ::geteuid()) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      "this kernel does not answer sock_diag (its module inet_diag), by which the portal knows "
      "whose browser asks");
}

}  // namespace tutti::api
