// Server is an HTTP/1.1 server that calls a handler for each request. A connection that waits (for
// its client, for an answer that comes later, for a follower's next line) costs no thread. Handlers
// run on a bounded pool of threads, in which nodes and users have parts of their own
// (handler_pool.h). The number of connections is bounded, too (open_connections.h): one too many
// gets 503. Hostile or broken requests get 4xx and never reach the handler. A server with an
// identity speaks TLS alone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "http/identity.h"
#include "http/message.h"

namespace tutti::http {

// Connection gives a handler the body of its request, which is not read before the handler asks for
// it. A handler that refuses a request (404) just returns; the body is then skipped, or the
// connection is closed.
class Connection {
 public:
  virtual ~Connection() = default;
  // Reads the whole body. OutOfRange (413) if it has more than `max_bytes`; DeadlineExceeded if it
  // stalls; Unauthenticated if a stranger sends it, whose body is skipped.
  virtual absl::StatusOr<std::string> ReadBody(uint64_t max_bytes = uint64_t{16} << 20) = 0;
  // Reads the body piece by piece as it arrives, for bodies that do not fit in memory. An error of
  // `sink` ends the reading and is returned.
  virtual absl::Status ReadBodyTo(const std::function<absl::Status(absl::string_view)>& sink,
                                  uint64_t max_bytes) = 0;
  // Returns the body's announced size, or -1 if it is chunked.
  virtual int64_t ContentLength() const = 0;
  // Returns whether the client has gone or the server stops.
  virtual bool Closed() = 0;
  // Returns a function that has Response::later or Response::stream of this request called again.
  // Any thread may call it at any time, also after the connection has been closed; it takes no lock
  // of its caller's.
  virtual std::function<void()> Waker() = 0;
};

// Role says who sends a request; a stranger has shown no valid token. Each role has threads and
// connections that the others cannot take; monitors have a few of both.
enum class Role { kStranger, kNode, kUser, kMonitor };

// Pace says how long a handler may hold its thread:
//   kQuick     it waits for nothing but a database
//   kSlow      it waits for seconds, for a network or a folder
//   kForeign   it waits for places that the request names, as long as they take
//   kReceives  it waits for the body, and for the folder that the body goes to
enum class Pace { kQuick, kSlow, kForeign, kReceives };

// Admission is what ServerOptions::admit decides about a request.
struct Admission {
  Role role = Role::kStranger;
  std::optional<Response> refusal;  // sent as the answer, without reading the body
  Pace pace = Pace::kQuick;
  // Requests of one group that are not quick get only a few threads at a time; sending a file
  // counts as such. An empty group has no limit.
  std::string group;
  int kind = -1;  // which call it is; passed on to ServerOptions::on_answered
};

// AnsweredRequest is reported when an answer begins.
struct AnsweredRequest {
  int kind = -1;  // Admission::kind; -1: the request was not judged
  int status = 200;
  absl::Duration time;  // since the request's header had arrived
};

// ConnectionCounts is how many connections are open, and how many may be.
struct ConnectionCounts {
  int64_t strangers = 0, nodes = 0, users = 0, monitors = 0;
  int64_t most = 0;           // of all roles together
  int64_t most_per_role = 0;  // of nodes, and as many of users
  int64_t most_of_monitors = 0;
};

// A Handler answers a request that was admitted. Many threads call it at once. It must not wait for
// anything that only other requests bring. If it throws, the client gets 500; if no thread is free
// for it in time, 503.
using Handler = std::function<Response(const Request&, Connection&)>;

struct ServerOptions {
  std::shared_ptr<const Identity> identity;  // null: plain HTTP
  std::string address = "127.0.0.1";         // numeric
  int port = 0;                              // 0: any free one
  std::string port_option = "--port";        // by which a user chooses another one
  // Judges a request by its header alone, without waiting. Null: everybody is a user.
  std::function<Admission(const Request&)> admit;
  // Is called for each answer, also for refusals, by many threads; must not wait. May be null.
  std::function<void(const AnsweredRequest&)> on_answered;
  int max_connections = 4096;  // fewer where the process may not open as many files
  // Limits the memory of bodies that wait for a thread for their handler, for nodes and for users
  // each. A body for which there is no room is read by its handler.
  int64_t prefetch_bytes = int64_t{64} << 20;
  // A larger body than this is read by its handler, too.
  int64_t max_prefetched_body = 256 << 10;
  uint32_t max_header_bytes = 32 << 10;
  // Limits the wait for a connection's first byte, the TLS handshake, the arrival of a whole header
  // and the skipping of a body that no handler has read.
  absl::Duration header_timeout = absl::Seconds(15);
  // Limits how long a connection may be idle between two requests, unless it is a stranger's.
  absl::Duration idle_timeout = absl::Seconds(120);
  // Limits how long no byte of a body may arrive or leave.
  absl::Duration stall_timeout = absl::Seconds(60);
  // Limits the wait for a thread of a handler that is not quick; with a large body stall_timeout
  // does.
  absl::Duration room_timeout = absl::Seconds(10);
};

// Thread-safe. The destructor calls Stop without grace.
class Server {
 public:
  // Starts to listen. AlreadyExists, with the address, the port and what to do, if it is in use;
  // PermissionDenied if it may not be used.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options,
                                                       Handler handler);
  ~Server();
  const std::string& address() const;
  int port() const;
  std::string url() const;  // "http://127.0.0.1:6280", with an identity "https://…"
  ConnectionCounts connections() const;
  // Accepts no more connections, closes the idle ones, makes Closed() true, breaks streams off and
  // answers with 503 what would come later. Waits up to `grace` for requests that are being
  // handled, then breaks their connections off and waits for the handlers to return.
  void Stop(absl::Duration grace);

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tutti::http
