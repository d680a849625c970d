#include "runtime/comm/transport/tcp_channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "runtime/comm/rendezvous/wire/stream_socket.h"

namespace tutti::comm {

absl::StatusOr<size_t> TcpChannel::TrySend(std::span<const std::byte> bytes) {
  while (true) {
    const ssize_t n = ::send(fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) return static_cast<size_t>(n);
    if (errno == EAGAIN) return 0;
    if (errno != EINTR) return ConnectionClosed();
  }
}

absl::StatusOr<size_t> TcpChannel::TrySendParts(Parts parts) {
  if (parts.size() == 1) return TrySend(parts[0]);
  std::array<iovec, kMostPartsAtOnce> vectors;
  msghdr message = {};
  message.msg_iov = vectors.data();
  message.msg_iovlen = std::min(parts.size(), kMostPartsAtOnce);
  for (size_t i = 0; i < message.msg_iovlen; ++i) {
    vectors[i] = {const_cast<std::byte*>(parts[i].data()), parts[i].size()};
  }
  while (true) {
    const ssize_t n = ::sendmsg(fd(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) return static_cast<size_t>(n);
    if (errno == EAGAIN) return 0;
    if (errno != EINTR) return ConnectionClosed();
  }
}

absl::StatusOr<size_t> TcpChannel::ReceiveInto(std::span<std::byte> bytes) {
  while (true) {
    const ssize_t n = ::recv(fd(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (n > 0) return static_cast<size_t>(n);
    if (n == 0) return ConnectionClosed();
    if (errno == EAGAIN) return 0;
    if (errno != EINTR) return ConnectionClosed();
  }
}

short TcpChannel::PrepareTransportToSleep(bool to_send, bool to_receive) {
  return static_cast<short>((to_send ? POLLOUT : 0) | (to_receive ? POLLIN : 0));
}

}  // namespace tutti::comm
