#include "http/socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tutti::http {
namespace {

using boost::system::error_code;

constexpr char kHandshakeRecord = 0x16;      // the first byte of TLS: RFC 8446, 5.1
constexpr size_t kLargestRecord = 16 << 10;  // of TLS: RFC 8446, 5.1

error_code Errno() { return {errno, boost::system::system_category()}; }

}  // namespace

Socket::Socket(base::UniqueFd fd, int stop_fd) : fd_(std::move(fd)), stop_fd_(stop_fd) {
  ::fcntl(fd_.get(), F_SETFL, ::fcntl(fd_.get(), F_GETFL) | O_NONBLOCK);
  const int on = 1;
  ::setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void Socket::Limit(std::optional<base::Deadline> whole, absl::Duration stall) {
  whole_ = whole;
  stall_ = stall;
}

std::optional<base::Deadline> Socket::End() const {
  if (stall_ == absl::InfiniteDuration()) return whole_;
  const base::Deadline stall = base::Deadline::After(stall_);
  return whole_ ? base::Deadline::Sooner(*whole_, stall) : stall;
}

error_code Socket::Await(short events) { return AwaitUntil(End(), events); }

bool Socket::HasData() const {
  pollfd waiting{fd_.get(), POLLIN, 0};
  return (tls_ != nullptr && tls_->HasPending()) || ::poll(&waiting, 1, 0) > 0;
}

error_code Socket::AwaitUntil(std::optional<base::Deadline> end, short events) {
  if (!waits_) {
    wanted_ = events;
    return boost::asio::error::would_block;
  }
  while (true) {
    pollfd waiting[2] = {{fd_.get(), events, 0}, {stop_fd_, POLLIN, 0}};
    const int ready = ::poll(waiting, 2, end ? end->RemainingMillis() : -1);
    if (ready < 0 && errno != EINTR) return Errno();
    if (waiting[1].revents != 0 && ready > 0) return boost::asio::error::operation_aborted;
    if (ready > 0) return {};
    if (end && end->Expired()) return boost::asio::error::timed_out;
  }
}

bool Socket::PeerHasGone() const {
  pollfd waiting{fd_.get(), POLLRDHUP, 0};
  return ::poll(&waiting, 1, 0) > 0 &&
         (waiting.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) != 0;
}

absl::Status Socket::ConnectTls(const std::string& host, const std::string& certificate) {
  TUTTI_ASSIGN_OR_RETURN(std::unique_ptr<Tls> tls, Tls::Connect(fd_.get(), host, certificate));
  return Handshake(std::move(tls), host);
}

error_code Socket::AcceptTls(const Identity& identity) {
  if (accepting_ == nullptr) {
    char first = 0;
    const ssize_t n = ::recv(fd_.get(), &first, 1, MSG_PEEK);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
      wanted_ = POLLIN;
      return boost::asio::error::would_block;
    }
    if (n <= 0) return boost::asio::error::eof;
    if (first != kHandshakeRecord) return make_error_code(boost::system::errc::protocol_error);
    auto accepting = Tls::Accept(fd_.get(), identity);
    if (!accepting.ok()) return boost::asio::error::no_memory;
    accepting_ = *std::move(accepting);
  }
  error_code error;
  Finish([&] { return accepting_->Handshake(); }, error);
  if (!error) tls_ = std::move(accepting_);
  return error;
}

absl::Status Socket::Handshake(std::unique_ptr<Tls> tls, absl::string_view peer) {
  error_code error;
  Finish([&] { return tls->Handshake(); }, error);
  if (error == boost::asio::error::operation_aborted) return absl::CancelledError("cancelled");
  if (error == boost::asio::error::timed_out) {
    return absl::DeadlineExceededError(absl::StrCat(peer, " did not begin TLS in time"));
  }
  if (error) return tls->Failure();
  tls_ = std::move(tls);
  return absl::OkStatus();
}

void Socket::EndWriting() {
  if (tls_ != nullptr) tls_->End();
  ::shutdown(fd_.get(), SHUT_WR);
}

size_t Socket::Finish(const std::function<Tls::Step()>& step, error_code& error) {
  // The deadline holds for the whole call, since bytes may arrive that carry no data.
  const std::optional<base::Deadline> end = End();
  while (true) {
    const Tls::Step now = step();
    error = {};
    if (now.kind == Tls::Step::Kind::kDone) return now.bytes;
    if (now.kind == Tls::Step::Kind::kEnd) {
      error = boost::asio::error::eof;
    } else if (now.kind == Tls::Step::Kind::kFailed) {
      error = boost::asio::error::connection_reset;
    } else if (end && end->Expired()) {
      error = boost::asio::error::timed_out;
    } else {
      error = AwaitUntil(end, now.events);
    }
    if (error) return 0;
  }
}

size_t Socket::Read(void* data, size_t size, error_code& error) {
  if (tls_ != nullptr) return Finish([&] { return tls_->Read(data, size); }, error);
  while (true) {
    const ssize_t n = ::recv(fd_.get(), data, size, 0);
    if (n > 0) {
      error = {};
      return static_cast<size_t>(n);
    }
    if (n == 0) {
      error = boost::asio::error::eof;
      return 0;
    }
    if (errno == EINTR) continue;
    error = errno == EAGAIN ? Await(POLLIN) : Errno();
    if (error) return 0;
  }
}

size_t Socket::Write(iovec* pieces, size_t count, error_code& error) {
  error = {};
  if (count == 0) return 0;
  if (tls_ != nullptr) return WriteByTls(pieces, count, error);
  msghdr message{};
  message.msg_iov = pieces;
  message.msg_iovlen = count;
  while (true) {
    const ssize_t n = ::sendmsg(fd_.get(), &message, MSG_NOSIGNAL | (more_ ? MSG_MORE : 0));
    if (n >= 0) {
      error = {};
      return static_cast<size_t>(n);
    }
    if (errno == EINTR) continue;
    error = errno == EAGAIN ? Await(POLLOUT) : Errno();
    if (error) return 0;
  }
}

// Small writes go out as one record and one packet, together with what follows while more is
// expected.
size_t Socket::WriteByTls(const iovec* pieces, size_t count, error_code& error) {
  size_t taken = 0;
  for (size_t i = 0; i < count && record_.size() < kLargestRecord; ++i) {
    const size_t n = std::min(pieces[i].iov_len, kLargestRecord - record_.size());
    record_.append(static_cast<const char*>(pieces[i].iov_base), n);
    taken += n;
  }
  if (more_ && record_.size() < kLargestRecord) return taken;
  for (size_t sent = 0; sent < record_.size();) {
    sent +=
        Finish([&] { return tls_->Write(record_.data() + sent, record_.size() - sent); }, error);
    if (error) return 0;
  }
  record_.clear();
  return taken;
}

size_t Socket::WriteSome(absl::string_view bytes, error_code& error) {
  if (tls_ != nullptr) {
    const size_t size = std::min(bytes.size(), kLargestRecord);
    return Finish([&] { return tls_->Write(bytes.data(), size); }, error);
  }
  iovec piece{const_cast<char*>(bytes.data()), bytes.size()};
  return Write(&piece, 1, error);
}

}  // namespace tutti::http
