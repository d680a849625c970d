#include "runtime/comm/transport/tcp_channel.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/status.h"

namespace tutti::comm {
namespace {

constexpr size_t kBlockBytes = 256 << 10;

absl::Status Closed() { return absl::UnavailableError("connection closed"); }

}  // namespace

TcpChannel::TcpChannel(base::UniqueFd socket) : socket_(std::move(socket)) {}

absl::StatusOr<size_t> TcpChannel::TrySend(std::span<const std::byte> bytes) {
  while (true) {
    const ssize_t n = ::send(fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) return static_cast<size_t>(n);
    if (errno == EAGAIN) return 0;
    if (errno != EINTR) return Closed();
  }
}

absl::StatusOr<size_t> TcpChannel::ReceiveInto(std::byte* at, size_t most) {
  while (true) {
    const ssize_t n = ::recv(fd(), at, most, MSG_DONTWAIT);
    if (n > 0) return static_cast<size_t>(n);
    if (n == 0) return Closed();
    if (errno == EAGAIN) return 0;
    if (errno != EINTR) return Closed();
  }
}

absl::StatusOr<size_t> TcpChannel::TryReceive(std::span<std::byte> bytes) {
  if (bytes.empty()) return 0;
  if (staged() == 0) return ReceiveInto(bytes.data(), bytes.size());
  const size_t n = std::min(bytes.size(), staged());
  std::memcpy(bytes.data(), block_.get() + begin_, n);
  Release(n);
  return n;
}

absl::StatusOr<std::span<const std::byte>> TcpChannel::Peek(size_t least, size_t most) {
  // Not value-initialised: pages that are never used are never touched.
  if (block_ == nullptr) block_.reset(new std::byte[kBlockBytes]);
  if (staged() < least) {
    std::memmove(block_.get(), block_.get() + begin_, staged());
    end_ = staged();
    begin_ = 0;
    TUTTI_ASSIGN_OR_RETURN(const size_t n, ReceiveInto(block_.get() + end_, kBlockBytes - end_));
    end_ += n;
  }
  if (staged() < least) return std::span<const std::byte>();
  return std::span<const std::byte>(block_.get() + begin_, std::min(staged(), most));
}

void TcpChannel::Release(size_t bytes) {
  begin_ += bytes;
  if (begin_ == end_) begin_ = end_ = 0;
}

short TcpChannel::PrepareToSleep(bool to_send, size_t to_receive) {
  if (to_receive > 0 && staged() >= to_receive) return 0;
  return static_cast<short>((to_send ? POLLOUT : 0) | (to_receive > 0 ? POLLIN : 0));
}

}  // namespace tutti::comm
