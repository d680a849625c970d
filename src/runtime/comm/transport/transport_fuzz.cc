// What a peer sends while a channel is set up, and after: any bytes end in an error or a channel,
// never in a crash, a hang or a read outside of memory. (Messages before that: message_fuzz.cc. The
// address of a UCX worker is read by UCX itself, and taken from peers alone that know the token.)
#include <sys/socket.h>

#include <array>
#include <cstdint>

#include "runtime/comm/transport/shm_channel.h"
#include "runtime/comm/transport/tcp_channel.h"
#include "runtime/comm/transport/tls_channel.h"

namespace {

using tutti::comm::Channel;

absl::StatusOr<std::unique_ptr<Channel>> Make(uint8_t kind, tutti::base::UniqueFd socket) {
  using tutti::base::Deadline;
  using tutti::comm::Side;
  const tutti::comm::Patience patience{Deadline::After(absl::Seconds(1))};
  switch (kind % 4) {
    case 0:
      return tutti::comm::TlsChannel::Make(std::move(socket), Side::kOpener, "token", patience);
    case 1:
      return tutti::comm::TlsChannel::Make(std::move(socket), Side::kListener, "token", patience);
    case 2:
      return tutti::comm::ShmChannel::Make(std::move(socket), Side::kListener, patience);
    default:
      return std::make_unique<tutti::comm::TcpChannel>(std::move(socket));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  int ends[2];
  if (size == 0 ||
      ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) {
    return 0;
  }
  tutti::base::UniqueFd own(ends[0]), peer(ends[1]);
  [[maybe_unused]] const ssize_t n = ::send(peer.get(), data + 1, size - 1, MSG_NOSIGNAL);
  ::shutdown(peer.get(), SHUT_WR);
  auto channel = Make(data[0], std::move(own));
  std::array<std::byte, 4096> bytes;
  while (channel.ok()) {
    const auto received = (*channel)->TryReceive(bytes);
    if (!received.ok() || *received == 0) break;
  }
  return 0;
}
