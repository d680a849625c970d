// The client's side of TLS (1.2 or later) over a descriptor that does not block. The server's
// certificate must be for the host and signed by one that this machine trusts: the system's, or
// those of the file that SSL_CERT_FILE names. Internal to this room. Used by one thread at a time;
// writes may raise SIGPIPE, which programs here ignore or block.
#pragma once

#include <openssl/ssl.h>

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tutti::http {

class Tls {
 public:
  // What a step has come to.
  struct Step {
    enum class Kind { kDone, kEnd, kWait, kFailed };
    Kind kind;
    size_t bytes = 0;  // kDone
    short events = 0;  // kWait: until the descriptor has them, then the same call again
  };

  static absl::StatusOr<std::unique_ptr<Tls>> Begin(int fd, const std::string& host);

  Step Handshake();
  Step Read(void* data, size_t size);
  Step Write(const void* data, size_t size);
  // Why the last step failed.
  absl::Status Failure() const;

 private:
  struct Free {
    void operator()(SSL_CTX* context) const { ::SSL_CTX_free(context); }
    void operator()(SSL* session) const { ::SSL_free(session); }
  };
  explicit Tls(std::string host) : host_(std::move(host)) {}
  Step StepOf(int result, size_t bytes);

  const std::string host_;
  std::unique_ptr<SSL_CTX, Free> context_;
  std::unique_ptr<SSL, Free> session_;
  std::string failure_;
};

}  // namespace tutti::http
