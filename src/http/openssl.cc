#include "http/openssl.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"

namespace tutti::http {
namespace {

int FdOf(BIO* bio) { return static_cast<int>(reinterpret_cast<intptr_t>(::BIO_get_data(bio))); }

int Write(BIO* bio, const char* data, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t n = ::send(FdOf(bio), data, static_cast<size_t>(size), MSG_NOSIGNAL);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
  return static_cast<int>(n);
}

int Read(BIO* bio, char* data, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t n = ::recv(FdOf(bio), data, static_cast<size_t>(size), 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
  if (n == 0) ::BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return static_cast<int>(n);
}

long Control(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_EOF) return ::BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

BIO_METHOD* MakeSocketMethod() {
  BIO_METHOD* const method = ::BIO_meth_new(::BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
  if (method == nullptr) return nullptr;
  ::BIO_meth_set_write(method, &Write);
  ::BIO_meth_set_read(method, &Read);
  ::BIO_meth_set_ctrl(method, &Control);
  return method;
}

}  // namespace

BioPtr SocketBio(int fd) {
  static BIO_METHOD* const method = MakeSocketMethod();
  BioPtr bio(method == nullptr ? nullptr : ::BIO_new(method));
  if (bio == nullptr) return nullptr;
  ::BIO_set_data(bio.get(), reinterpret_cast<void*>(static_cast<intptr_t>(fd)));
  ::BIO_set_init(bio.get(), 1);
  return bio;
}

std::string QueuedErrors() {
  std::string text;
  while (const unsigned long code = ::ERR_get_error()) {
    const char* const reason = ::ERR_reason_error_string(code);
    absl::StrAppend(&text, text.empty() ? "" : ", ", reason == nullptr ? "unknown error" : reason);
  }
  return text;
}

bool IsNumericAddress(const std::string& host) {
  unsigned char address[16];
  return ::inet_pton(AF_INET, host.c_str(), address) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), address) == 1;
}

CertificatePtr NextCertificate(BIO* text) {
  return CertificatePtr(::PEM_read_bio_X509(text, nullptr, nullptr, nullptr));
}

BioPtr BioOf(absl::string_view text) {
  if (text.size() > static_cast<size_t>(std::numeric_limits<int>::max())) return nullptr;
  return BioPtr(::BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

}  // namespace tutti::http
