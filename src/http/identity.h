// Identity is the key and the certificate by which a server proves who it is. Immutable, so shared
// by all threads.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "http/openssl.h"

namespace tutti::http {

class Identity {
 public:
  // Makes, as PEM text, a new key (ECDSA, P-256) and a certificate that it has signed itself, for
  // these host names and numeric addresses, without an end (RFC 5280, 4.1.2.5).
  static absl::StatusOr<std::string> MakeSelfSigned(const std::vector<std::string>& names);

  // Reads PEM text with one private key (without a passphrase) and its certificate, which those of
  // its issuers may follow. InvalidArgument says what is missing or does not fit.
  static absl::StatusOr<std::shared_ptr<const Identity>> FromPem(absl::string_view text);

  // Returns the certificate alone, as PEM, by which a client can know this server.
  const std::string& certificate() const { return certificate_; }
  // Returns why other programs may reject the certificate at this numeric address, each reason as
  // "ends on 2026-12-01".
  std::vector<std::string> Remarks(const std::string& address, absl::Time now) const;
  // Returns the context for a server's sessions; it stays this object's.
  SSL_CTX* context() const { return context_.get(); }

 private:
  Identity() = default;

  std::unique_ptr<SSL_CTX, FreeOpenSsl> context_;
  std::string certificate_;
};

// Returns whether a certificate (PEM) is signed by itself; false if the text is no certificate.
bool IsSelfSigned(absl::string_view certificate);

}  // namespace tutti::http
