#include "platform/http/openssl.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <limits>

#include "absl/strings/str_cat.h"

namespace tutti::http {

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
  CertificatePtr certificate(::PEM_read_bio_X509(text, nullptr, nullptr, nullptr));
  if (certificate == nullptr) ::ERR_clear_error();
  return certificate;
}

BioPtr BioOf(absl::string_view text) {
  if (text.size() > static_cast<size_t>(std::numeric_limits<int>::max())) return nullptr;
  return BioPtr(::BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

}  // namespace tutti::http
