#include "runtime/comm/rendezvous/wire/buffered_connection.h"

#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>

namespace tutti::comm {

BufferedConnection::End BufferedConnection::Read() {
  char block[4096];
  while (true) {
    const ssize_t n = ::recv(fd_.get(), block, sizeof(block), MSG_DONTWAIT);
    if (n > 0) {
      incoming_.append(block, static_cast<size_t>(n));
    } else if (n == 0) {
      return End::kInOrder;
    } else if (errno == EAGAIN) {
      return End::kOpen;
    } else if (errno != EINTR) {
      return End::kReset;
    }
  }
}

absl::StatusOr<Message> BufferedConnection::Next(size_t longest) {
  if (incoming_.size() < 4) return absl::NotFoundError("");
  uint32_t length = 0;
  for (int i = 3; i >= 0; --i) length = length << 8 | static_cast<uint8_t>(incoming_[i]);
  if (length > longest) return absl::InvalidArgumentError("message too long");
  if (incoming_.size() < 4 + length) return absl::NotFoundError("");
  absl::StatusOr<Message> message = comm::Read(absl::string_view(incoming_).substr(4, length));
  incoming_.erase(0, 4 + length);
  return message;
}

void BufferedConnection::Push() {
  while (fd_.valid() && !unsent_.empty()) {
    const ssize_t n =
        ::send(fd_.get(), unsent_.data(), unsent_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return;  // full: later; gone: reading will say so
    unsent_.erase(0, static_cast<size_t>(n));
  }
}

absl::Status BufferedConnection::Flush(const Patience& patience) {
  return Send(fd_.get(), std::exchange(unsent_, {}), patience);
}

bool BufferedConnection::IsDelivered() const {
  int queued = 0;
  return unsent_.empty() && ::ioctl(fd_.get(), SIOCOUTQ, &queued) == 0 && queued == 0;
}

short BufferedConnection::events() const {
  return static_cast<short>(unsent_.empty() ? POLLIN : POLLIN | POLLOUT);
}

}  // namespace tutti::comm
