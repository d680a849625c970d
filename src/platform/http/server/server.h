// Server is an HTTP/1.1 server that calls a handler for each request. A connection that waits (for
// its client, for an answer that comes later, for a follower's next line) costs no thread; handlers
// run on a bounded pool, of which nodes and users have parts of their own (handler_pool.h). The
// number of connections is bounded, too (open_connections.h); one too many gets 503. Hostile or
// broken requests get 4xx and never reach the handler. With an identity it speaks TLS alone.
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
#include "platform/http/identity.h"
#include "platform/http/message.h"

namespace tutti::http {

// The connection a request came by: its body, read when the handler wants it and not before. A
// handler that refuses (404) just returns; the body is then skipped or the connection closed.
class Connection {
 public:
  virtual ~Connection() = default;
  // Reads the whole body. OutOfRange (413) if it is larger; DeadlineExceeded if it stalls;
  // Unauthenticated of a stranger, whose body is passed over.
  virtual absl::StatusOr<std::string> ReadBody(uint64_t max_bytes = uint64_t{16} << 20) = 0;
  // Reads the body piece by piece as it comes, for bodies that do not fit in memory. An error of
  // `sink` ends the reading and is returned.
  virtual absl::Status ReadBodyTo(const std::function<absl::Status(absl::string_view)>& sink,
                                  uint64_t max_bytes) = 0;
  // Returns the body's announced size, or -1 if it is chunked.
  virtual int64_t ContentLength() const = 0;
  // Returns whether the client has gone or the server stops.
  virtual bool Closed() = 0;
  // Has Response::later or Response::stream of this request called again. To be called by any
  // thread, at any time, also when the connection is no more; takes no lock of others.
  virtual std::function<void()> Waker() = 0;
};

// Who sends a request. Each has threads and connections that the others do not take: monitors have
// a few of both.
enum class Party { kStranger, kNode, kUser, kMonitor };

// How long a handler may hold its thread. kQuick: it waits for nothing but a database. kSlow: for
// seconds, for a network or a folder. kForeign: for as long as places take that the request names.
// kReceives: as long as the body takes, and the folder that it goes to.
enum class Pace { kQuick, kSlow, kForeign, kReceives };

struct Admission {
  Party party = Party::kStranger;
  std::optional<Response> refusal;  // is the answer; the body is not read
  Pace pace = Pace::kQuick;
  // Requests of the same group get only a few threads at a time if they are not quick, the sending
  // of a file included. Empty: no such limit.
  std::string group;
  int kind = -1;  // which call it is: told to ServerOptions::answered
};

// An answer that begins.
struct Answered {
  int kind = -1;  // of the request's Admission; -1: it had none
  int status = 200;
  absl::Duration time;  // since the request's header was here
};

// The connections that are open now.
struct ConnectionCounts {
  int64_t strangers = 0, nodes = 0, users = 0, monitors = 0;
  int64_t most = 0;           // of all of them
  int64_t most_of_party = 0;  // of nodes, and of users
  int64_t most_of_monitors = 0;
};

// Called from many threads at once, for requests that were admitted, for nothing that only other
// requests bring. An exception is answered with 500. 503 where no thread was free
// in time.
using Handler = std::function<Response(const Request&, Connection&)>;

struct ServerOptions {
  std::shared_ptr<const Identity> identity;  // null: plain HTTP
  std::string address = "127.0.0.1";         // numeric
  int port = 0;                              // 0: any free one
  // Judges a request by its header alone, without waiting. Null: everybody is a user.
  std::function<Admission(const Request&)> admit;
  // Told of each answer, also of refusals, without waiting; by many threads. Null: nobody.
  std::function<void(const Answered&)> answered;
  int max_connections = 4096;  // fewer where the process may not open as many files
  // Bodies that are kept until their handlers have a thread, of nodes and of users each. One that
  // has no room is read by its handler.
  int64_t prefetch_bytes = int64_t{64} << 20;
  uint32_t max_header_bytes = 32 << 10;
  // A whole header, from its first byte; the beginning of TLS; until the first byte of all.
  // And of a body that nobody wants.
  absl::Duration header_timeout = absl::Seconds(15);
  // How long a connection may be idle between two requests, unless it is a stranger's.
  absl::Duration idle_timeout = absl::Seconds(120);
  absl::Duration stall_timeout = absl::Seconds(60);  // no byte of a body came or went
  // No thread was free for what is not quick; with a large body it is stall_timeout.
  absl::Duration room_timeout = absl::Seconds(10);
};

// Thread-safe. Destroying it is Stop with no grace.
class Server {
 public:
  // Starts to listen. AlreadyExists, with address, port and remedy, if the port is taken;
  // PermissionDenied if it may not be used.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options,
                                                       Handler handler);
  ~Server();
  const std::string& address() const;
  int port() const;
  std::string url() const;  // "http://127.0.0.1:6280", with an identity "https://…"
  ConnectionCounts connections() const;
  // Takes no more connections, closes the idle ones, makes Closed() true, breaks streams off,
  // answers with 503 what would come later, waits up to `grace` for requests in work, then breaks
  // their connections off and waits for the handlers to return.
  void Stop(absl::Duration grace);

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tutti::http
