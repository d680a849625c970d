// Makes the pre-shared key of TLS between ranks, and OpenSSL's settings that let nothing else be
// used: TLS 1.3, one cipher, no certificate, no ticket.
#pragma once

#include <openssl/ssl.h>

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/comm/rendezvous/authenticate.h"

namespace tutti::comm {

struct FreeSslContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using SslContext = std::unique_ptr<SSL_CTX, FreeSslContext>;

absl::StatusOr<SslContext> TlsContext(Side side, absl::string_view token);

// Returns "what: " and what OpenSSL says about the last failure of this thread.
absl::Status TlsError(absl::StatusCode code, absl::string_view what);

}  // namespace tutti::comm
