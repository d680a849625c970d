#include "platform/launch/node/line_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "absl/strings/string_view.h"
#include "base/status.h"

namespace tutti::launch {
namespace {

constexpr size_t kLongestLine = 1 << 20;
constexpr size_t kMostFds = 8;
constexpr absl::Duration kPatienceWithReader = absl::Seconds(10);

// Until `fd` is ready. DeadlineExceeded.
absl::Status AwaitSocket(int fd, short events, base::Deadline deadline) {
  pollfd waiting{fd, events, 0};
  while (::poll(&waiting, 1, deadline.RemainingMillis()) <= 0) {
    if (deadline.Expired()) return absl::DeadlineExceededError("nothing came in time");
  }
  return absl::OkStatus();
}

}  // namespace

LineSocket::LineSocket(base::UniqueFd fd) : fd_(std::move(fd)) {
  ::fcntl(fd_.get(), F_SETFL, ::fcntl(fd_.get(), F_GETFL) | O_NONBLOCK);
}

absl::Status LineSocket::Send(const nlohmann::json& message) {
  const std::string line =
      message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  absl::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t n = ::send(fd_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (n >= 0) {
      rest.remove_prefix(static_cast<size_t>(n));
    } else if (errno == EAGAIN) {
      TUTTI_RETURN_IF_ERROR(
          AwaitSocket(fd_.get(), POLLOUT, base::Deadline::After(kPatienceWithReader)));
    } else if (errno != EINTR) {
      return absl::UnavailableError("the other side has gone");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<nlohmann::json>> LineSocket::Take() {
  while (true) {
    if (const size_t end = read_.find('\n'); end != std::string::npos) {
      nlohmann::json message = nlohmann::json::parse(read_.substr(0, end), nullptr, false);
      read_.erase(0, end + 1);
      if (!message.is_object()) return absl::InvalidArgumentError("a message that is no object");
      return std::optional(std::move(message));
    }
    if (read_.size() > kLongestLine) return absl::InvalidArgumentError("a message without an end");
    if (ended_) return absl::UnavailableError("the other side has gone");
    std::array<char, 4096> block;
    const ssize_t n = ::recv(fd_.get(), block.data(), block.size(), 0);
    if (n > 0) {
      read_.append(block.data(), static_cast<size_t>(n));
    } else if (n < 0 && errno == EAGAIN) {
      return std::optional<nlohmann::json>();
    } else if (n == 0 || errno != EINTR) {
      ended_ = true;
    }
  }
}

absl::StatusOr<nlohmann::json> LineSocket::Receive(base::Deadline deadline) {
  while (true) {
    TUTTI_ASSIGN_OR_RETURN(std::optional<nlohmann::json> message, Take());
    if (message) return *std::move(message);
    TUTTI_RETURN_IF_ERROR(AwaitSocket(fd_.get(), POLLIN, deadline));
  }
}

absl::Status SendFds(int socket, const std::vector<int>& fds) {
  char byte = 0;
  iovec content{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostFds * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
  std::memcpy(CMSG_DATA(header), fds.data(), fds.size() * sizeof(int));
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) == 1 ? absl::OkStatus()
                                                        : base::ErrnoStatus("sendmsg");
}

absl::StatusOr<std::vector<base::UniqueFd>> ReceiveFds(int socket, size_t least,
                                                       base::Deadline deadline) {
  TUTTI_RETURN_IF_ERROR(AwaitSocket(socket, POLLIN, deadline));
  char byte = 0;
  iovec content{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostFds * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t n;
  do {
    n = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (n < 0 && errno == EINTR);
  if (n < 0) return base::ErrnoStatus("recvmsg from the launcher");
  if (n == 0) return absl::UnavailableError("the launcher has gone");
  std::vector<base::UniqueFd> fds;
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS) {
    std::array<int, kMostFds> numbers{};
    const size_t got = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    std::memcpy(numbers.data(), CMSG_DATA(header), got * sizeof(int));
    for (size_t i = 0; i < got; ++i) fds.emplace_back(numbers[i]);
  }
  if (fds.size() < least) return absl::InternalError("the launcher sent other descriptors");
  return fds;
}

}  // namespace tutti::launch
