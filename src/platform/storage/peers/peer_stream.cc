#include "platform/storage/peers/peer_stream.h"

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/deadline.h"
#include "base/hash.h"
#include "base/status.h"

namespace tutti::storage {
namespace {

constexpr char kGreeting[] = "tutti-pieces";
constexpr size_t kNonceBytes = 16;
constexpr size_t kLongestLine = 1024;

std::string ProofOf(const PeerSecret& secret, absl::string_view who, absl::string_view words) {
  return base::Hex(
      base::HmacSha256(secret.token, absl::StrCat(who, " ", secret.subject, " ", words)));
}

absl::Status Gone() { return absl::UnavailableError("the other node has gone"); }

// Waits for what poll(2) calls `events`.
absl::Status Await(int fd, short events) {
  const base::Deadline deadline = base::Deadline::After(PeerStream::kPatience);
  pollfd waiting = {fd, events, 0};
  while (true) {
    const int found = ::poll(&waiting, 1, deadline.RemainingMillis());
    if (found > 0) return absl::OkStatus();
    if (found < 0 && errno != EINTR) return base::ErrnoStatus("poll");
    if (deadline.Expired()) return absl::DeadlineExceededError("the other node does not answer");
  }
}

}  // namespace

PeerStream::PeerStream(base::UniqueFd fd) : fd_(std::move(fd)) {
  const int on = 1;
  ::setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

absl::StatusOr<PeerStream> PeerStream::Connect(const std::string& address, int port) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(static_cast<uint16_t>(port));
  if (::inet_pton(AF_INET, address.c_str(), &name.sin_addr) != 1) {
    return absl::InvalidArgumentError(absl::StrCat(address, " is no numeric address"));
  }
  base::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return base::ErrnoStatus("socket");
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0) {
    if (errno != EINPROGRESS) return absl::UnavailableError(std::strerror(errno));
    TUTTI_RETURN_IF_ERROR(Await(fd.get(), POLLOUT));
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return absl::UnavailableError(std::strerror(error));
  }
  return PeerStream(std::move(fd));
}

absl::Status PeerStream::Send(std::span<const char> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) {
      bytes = bytes.subspan(static_cast<size_t>(n));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      TUTTI_RETURN_IF_ERROR(Await(fd_.get(), POLLOUT));
    } else if (errno != EINTR) {
      return Gone();
    }
  }
  return absl::OkStatus();
}

absl::Status PeerStream::SendLine(absl::string_view line) {
  const std::string text = absl::StrCat(line, "\n");
  return Send({text.data(), text.size()});
}

absl::Status PeerStream::Fill() {
  std::array<char, 4096> block;
  while (true) {
    const ssize_t n = ::recv(fd_.get(), block.data(), block.size(), MSG_DONTWAIT);
    if (n > 0) {
      read_.append(block.data(), static_cast<size_t>(n));
      return absl::OkStatus();
    }
    if (n == 0) return Gone();
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      TUTTI_RETURN_IF_ERROR(Await(fd_.get(), POLLIN));
    } else if (errno != EINTR) {
      return Gone();
    }
  }
}

absl::StatusOr<std::string> PeerStream::ReceiveLine() {
  size_t end;
  while ((end = read_.find('\n')) == std::string::npos) {
    if (read_.size() > kLongestLine) return absl::InvalidArgumentError("a line has no end");
    TUTTI_RETURN_IF_ERROR(Fill());
  }
  std::string line = read_.substr(0, end);
  read_.erase(0, end + 1);
  return line;
}

absl::Status PeerStream::Receive(std::span<char> bytes) {
  const size_t there = std::min(bytes.size(), read_.size());
  std::memcpy(bytes.data(), read_.data(), there);
  read_.erase(0, there);
  bytes = bytes.subspan(there);
  while (!bytes.empty()) {
    const ssize_t n = ::recv(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (n > 0) {
      bytes = bytes.subspan(static_cast<size_t>(n));
    } else if (n == 0) {
      return Gone();
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      TUTTI_RETURN_IF_ERROR(Await(fd_.get(), POLLIN));
    } else if (errno != EINTR) {
      return Gone();
    }
  }
  return absl::OkStatus();
}

void PeerStream::Shutdown() const { ::shutdown(fd_.get(), SHUT_RDWR); }

absl::Status PeerStream::IntroduceAsAsker(int node, const PeerSecret& secret) {
  const std::string own = base::RandomHex(kNonceBytes);
  TUTTI_RETURN_IF_ERROR(SendLine(absl::StrCat(kGreeting, " ", node, " ", own)));
  TUTTI_ASSIGN_OR_RETURN(const std::string answer, ReceiveLine());
  const std::vector<std::string> words = absl::StrSplit(answer, ' ');
  const std::string all = absl::StrCat(node, " ", own, " ", words.front());
  if (words.size() != 2 || !base::EqualInConstantTime(words[1], ProofOf(secret, "owner", all))) {
    return absl::PermissionDeniedError("who listens there does not fetch the same for this job");
  }
  return SendLine(ProofOf(secret, "asker", all));
}

absl::StatusOr<int> PeerStream::IntroduceAsOwner(const PeerSecret& secret) {
  TUTTI_ASSIGN_OR_RETURN(const std::string greeting, ReceiveLine());
  const std::vector<std::string> words = absl::StrSplit(greeting, ' ');
  int node = 0;
  if (words.size() != 3 || words[0] != kGreeting || !absl::SimpleAtoi(words[1], &node)) {
    return absl::InvalidArgumentError("no node of a job");
  }
  const std::string own = base::RandomHex(kNonceBytes);
  const std::string all = absl::StrCat(node, " ", words[2], " ", own);
  TUTTI_RETURN_IF_ERROR(SendLine(absl::StrCat(own, " ", ProofOf(secret, "owner", all))));
  TUTTI_ASSIGN_OR_RETURN(const std::string proof, ReceiveLine());
  if (base::EqualInConstantTime(proof, ProofOf(secret, "asker", all))) return node;
  return absl::PermissionDeniedError("it does not hold the job's token");
}

}  // namespace tutti::storage
