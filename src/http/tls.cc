#include "http/tls.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <poll.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "http/openssl.h"

namespace tutti::http {
namespace {

absl::Status Failed() { return absl::InternalError(absl::StrCat("TLS: ", QueuedErrors())); }

// Trusts exactly this certificate, whatever issuer, names, dates and purposes it has.
absl::Status TrustOnly(SSL_CTX* context, const std::string& certificate) {
  const BioPtr text = BioOf(certificate);
  const CertificatePtr only = NextCertificate(text.get());
  if (only == nullptr) {
    return absl::InvalidArgumentError(
        "the certificate that the service is to be known by is none in PEM form");
  }
  X509_STORE* const store = ::SSL_CTX_get_cert_store(context);
  const unsigned long as_it_is = X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_NO_CHECK_TIME;
  const bool ready = ::X509_STORE_add_cert(store, only.get()) == 1 &&
                     ::X509_STORE_set_flags(store, as_it_is) == 1 &&
                     ::SSL_CTX_set_purpose(context, X509_PURPOSE_ANY) == 1;
  return ready ? absl::OkStatus() : Failed();
}

absl::Status Expect(SSL* session, const std::string& host) {
  const bool named = IsNumericAddress(host) ? ::X509_VERIFY_PARAM_set1_ip_asc(
                                                  ::SSL_get0_param(session), host.c_str()) == 1
                                            : ::SSL_set1_host(session, host.c_str()) == 1;
  if (named) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(host, " is no name of a host"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tls>> Tls::Connect(int fd, const std::string& host,
                                                  const std::string& certificate) {
  ::ERR_clear_error();
  const std::unique_ptr<SSL_CTX, FreeOpenSsl> made(::SSL_CTX_new(::TLS_client_method()));
  SSL_CTX* const context = made.get();
  if (context == nullptr || SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1) {
    return Failed();
  }
  ::SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  if (!certificate.empty()) {
    TUTTI_RETURN_IF_ERROR(TrustOnly(context, certificate));
  } else if (::SSL_CTX_set_default_verify_paths(context) != 1) {
    return Failed();
  }
  std::unique_ptr<Tls> tls(new Tls(host));
  TUTTI_RETURN_IF_ERROR(tls->Open(context, fd));
  SSL* const session = tls->session_.get();
  ::SSL_set_connect_state(session);
  if (certificate.empty()) TUTTI_RETURN_IF_ERROR(Expect(session, host));
  if (!IsNumericAddress(host) && SSL_set_tlsext_host_name(session, host.c_str()) != 1) {
    return absl::InvalidArgumentError(absl::StrCat(host, " is no name of a host"));
  }
  return tls;
}

absl::StatusOr<std::unique_ptr<Tls>> Tls::Accept(int fd, const Identity& identity) {
  ::ERR_clear_error();
  std::unique_ptr<Tls> tls(new Tls("the client"));
  TUTTI_RETURN_IF_ERROR(tls->Open(identity.context(), fd));
  ::SSL_set_accept_state(tls->session_.get());
  return tls;
}

absl::Status Tls::Open(SSL_CTX* context, int fd) {
  session_.reset(::SSL_new(context));  // which keeps the context
  BioPtr bio = SocketBio(fd);
  if (session_ == nullptr || bio == nullptr) return Failed();
  ::SSL_set_bio(session_.get(), bio.get(), bio.get());
  (void)bio.release();
  // A session that waits keeps no buffers, since a service has thousands.
  SSL_set_mode(session_.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                   SSL_MODE_RELEASE_BUFFERS);
  // A read returns after a record without data, so that such records cannot hold a thread.
  SSL_clear_mode(session_.get(), SSL_MODE_AUTO_RETRY);
  ::SSL_set_options(session_.get(), SSL_OP_NO_RENEGOTIATION);
  return absl::OkStatus();
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
  const bool is_tls = ERR_GET_REASON(::ERR_peek_error()) != SSL_R_WRONG_VERSION_NUMBER;
  failure_ = QueuedErrors();
  if (!is_tls) failure_ = "what answers there does not speak TLS";
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
  return StepOf(::SSL_do_handshake(session_.get()), 0);
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

void Tls::End() {
  ::ERR_clear_error();
  ::SSL_shutdown(session_.get());
}

absl::Status Tls::Failure() const {
  return absl::UnavailableError(absl::StrCat("no secure connection to ", peer_, ": ", failure_));
}

}  // namespace tutti::http
