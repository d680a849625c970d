// Whatever bytes a client sends, the connection ends, and what reaches the handler is well-formed.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"
#include "http/server/server_connection.h"

namespace {

using tutti::http::Connection;
using tutti::http::Handler;
using tutti::http::Lane;
using tutti::http::Need;
using tutti::http::Request;
using tutti::http::Response;
using tutti::http::ServerConnection;

Response Check(const Request& request, Connection& connection) {
  const std::string path = absl::StrCat(request.path, "/");
  if (path.front() != '/' || absl::StrContains(path, "/../") || absl::StrContains(path, "/./") ||
      path.find('\0') != std::string::npos) {
    std::abort();
  }
  const auto body = connection.ReadBody(1000);
  if (body.ok() && body->size() > 1000) std::abort();
  return tutti::http::JsonResponse("{}");
}

// Serves a connection as a server's threads do.
void Serve(ServerConnection& connection) {
  Lane lane = Lane::kProtocol;
  while (true) {
    const Need need = connection.Turn(lane);
    if (need.kind == Need::Kind::kClose) return;
    const bool waits = need.kind == Need::Kind::kWaiting;
    lane = waits ? need.waiting.lane : need.place.lane;
    if (!waits) continue;
    pollfd socket{connection.fd(), need.waiting.events, 0};
    ::poll(&socket, 1, need.waiting.until.RemainingMillis());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > (16 << 10)) return 0;
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return 0;
  const tutti::base::UniqueFd client(ends[0]);
  tutti::base::UniqueFd server(ends[1]);
  const int large =
      4 << 20;  // answers to many requests must fit, since nobody reads them meanwhile
  ::setsockopt(server.get(), SOL_SOCKET, SO_SNDBUF, &large, sizeof large);
  if (::write(client.get(), data, size) != static_cast<ssize_t>(size)) return 0;
  ::shutdown(client.get(), SHUT_WR);
  tutti::http::ServerOptions options;
  options.stall_timeout = absl::Milliseconds(50);
  options.max_header_bytes = 4096;
  const std::atomic<bool> stopping = false;
  tutti::http::OpenConnections open(/*most=*/1, /*most_untrusted=*/1);
  tutti::http::PrefetchBudget prefetch(/*most=*/1000);
  const int number = server.release();  // `open` closes it
  if (!open.Add(number, "fuzz")) std::abort();
  const Handler handler = Check;
  {
    ServerConnection connection(number, "fuzz", {options, handler, open, prefetch, stopping},
                                [] {});
    Serve(connection);
  }
  open.Close(number);
  return 0;
}
