// An HTTP/1.1 server with one thread per connection: a handler may block on a database or on a
// condition, and a follower that reads for hours holds its own thread and nobody else's. The number
// of connections is bounded (open_connections.h); one too many gets 503. Hostile or broken requests
// get 4xx and never reach the handler. With an identity it speaks TLS alone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "platform/http/identity.h"
#include "platform/http/message.h"

namespace tutti::http {

// The connection a request came by: its body, read when the handler wants it and not before. A
// handler that refuses (401, 404) just returns; the body is then skipped or the connection closed.
class Connection {
 public:
  virtual ~Connection() = default;
  // The whole body. OutOfRange (413) if it is larger; DeadlineExceeded if it stalls.
  virtual absl::StatusOr<std::string> ReadBody(uint64_t max_bytes = uint64_t{16} << 20) = 0;
  // The body piece by piece as it comes, for bodies that do not fit in memory. An error of `sink`
  // ends the reading and is returned.
  virtual absl::Status ReadBodyTo(const std::function<absl::Status(absl::string_view)>& sink,
                                  uint64_t max_bytes) = 0;
  // The body's announced size, or -1 if it is chunked.
  virtual int64_t ContentLength() const = 0;
  // As Writer::Closed, for a handler that waits (long poll).
  virtual bool Closed() = 0;
  // The client has proved who it is: its connection is kept before those of untrusted ones.
  virtual void Trust() = 0;
};

// Called from many threads at once. An exception that it throws is answered with 500.
using Handler = std::function<Response(const Request&, Connection&)>;

struct ServerOptions {
  std::shared_ptr<const Identity> identity;  // null: plain HTTP
  std::string address = "127.0.0.1";         // numeric
  int port = 0;                              // 0: any free one
  int max_connections = 1024;
  uint32_t max_header_bytes = 32 << 10;
  // A whole header, from its first byte; the beginning of TLS; until the first byte of all.
  // And of a body that nobody wants.
  absl::Duration header_timeout = absl::Seconds(15);
  absl::Duration idle_timeout = absl::Seconds(120);  // between two requests of a connection
  absl::Duration stall_timeout = absl::Seconds(60);  // no byte of a body came or went
};

// Thread-safe. Destroying it is Stop with no grace.
class Server {
 public:
  // AlreadyExists if the port is taken (names address and port, and the remedy), PermissionDenied
  // if it may not be used.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options,
                                                       Handler handler);
  ~Server();
  const std::string& address() const;
  int port() const;
  std::string url() const;  // "http://127.0.0.1:6280", with an identity "https://…"
  // Takes no more connections, closes the idle ones, makes Closed() true, waits up to `grace` for
  // requests in work, then breaks their connections off and waits for the handlers to return.
  void Stop(absl::Duration grace);

 private:
  class Impl;
  explicit Server(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace tutti::http
