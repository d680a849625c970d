#include "runtime/comm/rendezvous/wire/descriptors.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tutti::comm {
namespace {

using base::UniqueFd;

constexpr size_t kMostInAMessage = 128;  // the system takes 253
constexpr absl::Duration kOthersTakeTheirs = absl::Milliseconds(1);

// The control part of a message.
struct Enclosure {
  alignas(cmsghdr) char bytes[CMSG_SPACE(kMostInAMessage * sizeof(int))] = {};
};

ssize_t SendEnclosing(int socket, const void* bytes, size_t size, std::span<const int> descriptors,
                      int flags) {
  Enclosure enclosure;
  iovec data = {const_cast<void*>(bytes), size};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = enclosure.bytes;
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  }
  return ::sendmsg(socket, &message, flags | MSG_NOSIGNAL);
}

// Every descriptor that has come is owned, whatever the peer has sent beside it.
ssize_t ReceiveEnclosed(int socket, void* bytes, size_t size, std::vector<UniqueFd>& descriptors,
                        int flags) {
  Enclosure enclosure;
  iovec data = {bytes, size};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = enclosure.bytes;
  message.msg_controllen = sizeof(enclosure.bytes);
  const ssize_t n = ::recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
  if (n < 0) return n;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t came = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < came; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      descriptors.emplace_back(descriptor);
    }
  }
  return n;
}

// One message. Waits for room in the socket, and in what the system allows this user.
absl::Status SendPart(int socket, std::span<const int> part, const Patience& patience) {
  const char byte = 0;
  while (SendEnclosing(socket, &byte, 1, part, MSG_DONTWAIT) != 1) {
    if (errno == EAGAIN) {
      TUTTI_RETURN_IF_ERROR(WaitFor(socket, POLLOUT, patience));
    } else if (errno == ETOOMANYREFS) {
      TUTTI_RETURN_IF_ERROR(Pause(kOthersTakeTheirs, patience));
    } else if (errno != EINTR) {
      return base::ErrnoStatus("send a descriptor");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<UniqueFd>> ReceivePart(int socket, size_t count,
                                                  const Patience& patience) {
  std::vector<UniqueFd> part;
  char byte = 0;
  while (true) {
    TUTTI_RETURN_IF_ERROR(WaitFor(socket, POLLIN, patience));
    const ssize_t n = ReceiveEnclosed(socket, &byte, 1, part, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n != 1) return ConnectionClosed();
    if (part.size() == count) return part;
    return absl::InvalidArgumentError(
        absl::StrCat(part.size(), " descriptors came with the message and not ", count));
  }
}

}  // namespace

ssize_t SendWithDescriptor(int socket, const void* bytes, size_t size, int descriptor, int flags) {
  const std::span<const int> descriptors(&descriptor, descriptor >= 0 ? 1 : 0);
  return SendEnclosing(socket, bytes, size, descriptors, flags);
}

ssize_t ReceiveWithDescriptor(int socket, void* bytes, size_t size, UniqueFd& descriptor,
                              int flags) {
  std::vector<UniqueFd> came;
  const ssize_t n = ReceiveEnclosed(socket, bytes, size, came, flags);
  if (came.size() == 1) descriptor = std::move(came.front());
  return n;
}

absl::Status SendDescriptor(int socket, int descriptor, const Patience& patience) {
  return SendPart(socket, {&descriptor, 1}, patience);
}

absl::StatusOr<UniqueFd> ReceiveDescriptor(int socket, const Patience& patience) {
  TUTTI_ASSIGN_OR_RETURN(std::vector<UniqueFd> one, ReceivePart(socket, 1, patience));
  return std::move(one.front());
}

absl::Status SendDescriptors(int socket, std::span<const int> descriptors,
                             const Patience& patience) {
  while (!descriptors.empty()) {
    const size_t count = std::min(descriptors.size(), kMostInAMessage);
    TUTTI_RETURN_IF_ERROR(SendPart(socket, descriptors.first(count), patience));
    TUTTI_RETURN_IF_ERROR(Receive(socket, 1, patience).status());
    descriptors = descriptors.subspan(count);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<UniqueFd>> ReceiveDescriptors(int socket, size_t count,
                                                         const Patience& patience) {
  std::vector<UniqueFd> all;
  while (all.size() < count) {
    const size_t next = std::min(count - all.size(), kMostInAMessage);
    TUTTI_ASSIGN_OR_RETURN(std::vector<UniqueFd> part, ReceivePart(socket, next, patience));
    for (UniqueFd& descriptor : part) all.push_back(std::move(descriptor));
    TUTTI_RETURN_IF_ERROR(Send(socket, absl::string_view("\0", 1), patience));
  }
  return all;
}

}  // namespace tutti::comm
