#include "platform/http/tls.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <poll.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace tutti::http {
namespace {

bool IsNumeric(const std::string& host) {
  unsigned char address[16];
  return ::inet_pton(AF_INET, host.c_str(), address) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), address) == 1;
}

std::string QueuedErrors() {
  std::string text;
  while (const unsigned long code = ::ERR_get_error()) {
    const char* const reason = ::ERR_reason_error_string(code);
    absl::StrAppend(&text, text.empty() ? "" : ", ", reason == nullptr ? "unknown error" : reason);
  }
  return text;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tls>> Tls::Begin(int fd, const std::string& host) {
  std::unique_ptr<Tls> tls(new Tls(host));
  tls->context_.reset(::SSL_CTX_new(::TLS_client_method()));
  SSL_CTX* const context = tls->context_.get();
  const bool ready = context != nullptr && ::SSL_CTX_set_default_verify_paths(context) == 1 &&
                     SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1;
  if (!ready) return absl::InternalError(absl::StrCat("TLS: ", QueuedErrors()));
  ::SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  tls->session_.reset(::SSL_new(context));
  SSL* const session = tls->session_.get();
  if (session == nullptr || ::SSL_set_fd(session, fd) != 1) {
    return absl::InternalError(absl::StrCat("TLS: ", QueuedErrors()));
  }
  SSL_set_mode(session, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  const bool named = IsNumeric(host) ? ::X509_VERIFY_PARAM_set1_ip_asc(::SSL_get0_param(session),
                                                                       host.c_str()) == 1
                                     : ::SSL_set1_host(session, host.c_str()) == 1 &&
                                           SSL_set_tlsext_host_name(session, host.c_str()) == 1;
  if (!named) return absl::InvalidArgumentError(absl::StrCat(host, " is no name of a host"));
  return tls;
}

Tls::Step Tls::StepOf(int result, size_t bytes) {
  if (result > 0) return {Step::Kind::kDone, bytes};
  const int saved = errno;
  switch (::SSL_get_error(session_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return {Step::Kind::kWait, 0, POLLIN};
    case SSL_ERROR_WANT_WRITE:
      return {Step::Kind::kWait, 0, POLLOUT};
    case SSL_ERROR_ZERO_RETURN:
      return {Step::Kind::kEnd};
    default:
      break;
  }
  const long verified = ::SSL_get_verify_result(session_.get());
  failure_ = QueuedErrors();
  if (verified != X509_V_OK) {
    failure_ = absl::StrCat("its certificate is not trusted (",
                            ::X509_verify_cert_error_string(verified), ")");
  } else if (failure_.empty()) {
    failure_ = saved == 0 ? "the connection was cut" : std::strerror(saved);
  }
  return {Step::Kind::kFailed};
}

Tls::Step Tls::Handshake() {
  ::ERR_clear_error();
  return StepOf(::SSL_connect(session_.get()), 0);
}

Tls::Step Tls::Read(void* data, size_t size) {
  ::ERR_clear_error();
  size_t bytes = 0;
  const int result = ::SSL_read_ex(session_.get(), data, size, &bytes);
  return StepOf(result, bytes);
}

Tls::Step Tls::Write(const void* data, size_t size) {
  ::ERR_clear_error();
  size_t bytes = 0;
  const int result = ::SSL_write_ex(session_.get(), data, size, &bytes);
  return StepOf(result, bytes);
}

absl::Status Tls::Failure() const {
  return absl::UnavailableError(absl::StrCat("no secure connection to ", host_, ": ", failure_));
}

}  // namespace tutti::http
