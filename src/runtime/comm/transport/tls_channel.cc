#include "runtime/comm/transport/tls_channel.h"

#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/status.h"
#include "runtime/comm/rendezvous/wire/stream_socket.h"
#include "runtime/comm/transport/tls_key.h"

namespace tutti::comm {
namespace {

constexpr size_t kRecord = SSL3_RT_MAX_PLAIN_LENGTH;
constexpr size_t kTlsRing = 16 * (kRecord + 1024);  // each of the two
constexpr size_t kRoom = 2 * (kRecord + 256);       // a record, and a key update before it

}  // namespace

TlsChannel::TlsChannel(base::UniqueFd socket, std::unique_ptr<SSL, FreeSsl> ssl,
                       std::unique_ptr<BIO, FreeSsl> wire, uint64_t bytes_per_key)
    : socket_(std::move(socket)),
      ssl_(std::move(ssl)),
      wire_(std::move(wire)),
      bytes_per_key_(bytes_per_key) {}

absl::StatusOr<std::unique_ptr<TlsChannel>> TlsChannel::Prepare(base::UniqueFd socket, Side side,
                                                                absl::string_view token,
                                                                uint64_t bytes_per_key) {
  TUTTI_ASSIGN_OR_RETURN(const SslContext context, TlsContext(side, token));
  std::unique_ptr<SSL, FreeSsl> ssl(SSL_new(context.get()));
  BIO* inner = nullptr;
  BIO* outer = nullptr;
  if (ssl == nullptr || BIO_new_bio_pair(&inner, kTlsRing, &outer, kTlsRing) != 1) {
    return TlsError(absl::StatusCode::kResourceExhausted, "set up TLS");
  }
  SSL_set_bio(ssl.get(), inner, inner);
  if (side == Side::kOpener) {
    SSL_set_connect_state(ssl.get());
  } else {
    SSL_set_accept_state(ssl.get());
  }
  return std::unique_ptr<TlsChannel>(new TlsChannel(
      std::move(socket), std::move(ssl), std::unique_ptr<BIO, FreeSsl>(outer), bytes_per_key));
}

absl::StatusOr<std::unique_ptr<Channel>> TlsChannel::Make(base::UniqueFd socket, Side side,
                                                          absl::string_view token,
                                                          const Patience& patience,
                                                          uint64_t bytes_per_key) {
  TUTTI_ASSIGN_OR_RETURN(std::unique_ptr<TlsChannel> channel,
                         Prepare(std::move(socket), side, token, bytes_per_key));
  TUTTI_RETURN_IF_ERROR(channel->Handshake(patience));
  return std::unique_ptr<Channel>(std::move(channel));
}

absl::Status TlsChannel::Handshake(const Patience& patience) {
  while (true) {
    ERR_clear_error();
    const int result = SSL_do_handshake(ssl_.get());
    const int error = SSL_get_error(ssl_.get(), result);
    // Also after a failure: the alert says to the other side why.
    while (true) {
      TUTTI_ASSIGN_OR_RETURN(const bool flushed, Flush());
      if (flushed) break;
      TUTTI_RETURN_IF_ERROR(WaitFor(fd(), POLLOUT, patience));
    }
    if (result == 1 && SSL_session_reused(ssl_.get()) == 1) return absl::OkStatus();
    if (error != SSL_ERROR_WANT_READ) {
      return TlsError(absl::StatusCode::kPermissionDenied,
                      "the other side does not prove the job's token (TUTTI_JOB_TOKEN) over TLS");
    }
    TUTTI_ASSIGN_OR_RETURN(const bool came, Fill());
    if (!came) TUTTI_RETURN_IF_ERROR(WaitFor(fd(), POLLIN, patience));
  }
}

// From the ring to the socket, in the one or two parts that lie together.
absl::StatusOr<bool> TlsChannel::Flush() {
  while (BIO_ctrl_pending(wire_.get()) > 0) {
    char* bytes = nullptr;
    const int length = BIO_nread0(wire_.get(), &bytes);
    const ssize_t n = ::send(fd(), bytes, static_cast<size_t>(length), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      BIO_nread(wire_.get(), &bytes, static_cast<int>(n));
    } else if (errno == EAGAIN) {
      return false;
    } else if (errno != EINTR) {
      return ConnectionClosed();
    }
  }
  return true;
}

// From the socket to the ring, once; whether anything came.
absl::StatusOr<bool> TlsChannel::Fill() {
  char* place = nullptr;
  const int room = BIO_nwrite0(wire_.get(), &place);
  if (room <= 0) return false;
  while (true) {
    const ssize_t n = ::recv(fd(), place, static_cast<size_t>(room), MSG_DONTWAIT);
    if (n > 0) {
      BIO_nwrite(wire_.get(), &place, static_cast<int>(n));
      return true;
    }
    if (n < 0 && errno == EAGAIN) return false;
    if (n == 0 || errno != EINTR) return ConnectionClosed();
  }
}

absl::Status TlsChannel::ChangeKeyInTime(size_t bytes) {
  sent_with_key_ += bytes;
  if (sent_with_key_ < bytes_per_key_) return absl::OkStatus();
  sent_with_key_ = 0;
  if (SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED) == 1) return absl::OkStatus();
  return TlsError(absl::StatusCode::kInternal, "change the key of TLS");
}

absl::StatusOr<size_t> TlsChannel::TrySend(std::span<const std::byte> bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    if (BIO_ctrl_get_write_guarantee(SSL_get_wbio(ssl_.get())) < kRoom) {
      TUTTI_RETURN_IF_ERROR(Flush().status());
      if (BIO_ctrl_get_write_guarantee(SSL_get_wbio(ssl_.get())) < kRoom) return sent;
    }
    const size_t part = std::min(bytes.size() - sent, kRecord);
    size_t n = 0;
    if (SSL_write_ex(ssl_.get(), bytes.data() + sent, part, &n) != 1) {
      return TlsError(absl::StatusCode::kUnavailable, "send over TLS");
    }
    TUTTI_RETURN_IF_ERROR(ChangeKeyInTime(n));
    sent += n;
  }
  TUTTI_RETURN_IF_ERROR(Flush().status());
  return sent;
}

absl::StatusOr<size_t> TlsChannel::ReceiveInto(std::span<std::byte> bytes) {
  size_t received = 0;
  while (received < bytes.size()) {
    size_t n = 0;
    ERR_clear_error();
    if (SSL_read_ex(ssl_.get(), bytes.data() + received, bytes.size() - received, &n) == 1) {
      received += n;
      continue;
    }
    if (SSL_get_error(ssl_.get(), 0) != SSL_ERROR_WANT_READ) {
      return TlsError(absl::StatusCode::kUnavailable, "receive over TLS");
    }
    const absl::StatusOr<bool> came = Fill();
    if (!came.ok() && received == 0) return came.status();
    if (!came.ok() || !*came) break;
  }
  return received;
}

short TlsChannel::PrepareTransportToSleep(bool to_send, bool to_receive) {
  const size_t room = BIO_ctrl_get_write_guarantee(SSL_get_wbio(ssl_.get()));
  if (to_send && room >= kRoom) return 0;
  // A record that is whole may lie here already, and nothing more come.
  if (to_receive && (SSL_pending(ssl_.get()) > 0 || BIO_ctrl_wpending(wire_.get()) > 0)) return 0;
  const bool unsent = BIO_ctrl_pending(wire_.get()) > 0;
  return static_cast<short>((to_send || unsent ? POLLOUT : 0) | (to_receive ? POLLIN : 0));
}

}  // namespace tutti::comm
