// Tls is a session of TLS (1.2 or later), as client or as server, over a non-blocking descriptor.
// Internal to this room. Used by one thread at a time.
#pragma once

#include <openssl/ssl.h>

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "http/identity.h"
#include "http/openssl.h"

namespace tutti::http {

class Tls {
 public:
  // Step is the result of a step.
  struct Step {
    enum class Kind { kDone, kEnd, kWait, kFailed };
    Kind kind;
    size_t bytes = 0;  // kDone
    short events = 0;  // kWait: what the descriptor must have before the call is repeated
  };

  // Begins a client's session. With `certificate` (PEM) the server must show exactly that one,
  // whatever names and dates it has. Without, the server's certificate must be for the host and
  // signed by an issuer that this machine trusts: one of the system's, or of the file that
  // SSL_CERT_FILE names. InvalidArgument if the text is no certificate.
  static absl::StatusOr<std::unique_ptr<Tls>> Connect(int fd, const std::string& host,
                                                      const std::string& certificate);
  // Begins a server's session.
  static absl::StatusOr<std::unique_ptr<Tls>> Accept(int fd, const Identity& identity);

  Step Handshake();
  Step Read(void* data, size_t size);
  Step Write(const void* data, size_t size);
  // Tells the other side that nothing follows, if that is possible without waiting.
  void End();
  // Returns whether there are bytes to read that were taken from the descriptor already.
  bool HasPending() const { return ::SSL_pending(session_.get()) > 0; }
  // Returns why the last step failed.
  absl::Status Failure() const;

 private:
  explicit Tls(std::string peer) : peer_(std::move(peer)) {}
  absl::Status Open(SSL_CTX* context, int fd);
  Step StepOf(int result, size_t bytes);

  const std::string peer_;  // as errors call it
  std::unique_ptr<SSL, FreeOpenSsl> session_;
  std::string failure_;
};

}  // namespace tutti::http
