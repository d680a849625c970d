// One connection of a server, from its first request to its last. Internal to this room.
#pragma once

#include <atomic>

#include "platform/http/open_connections.h"
#include "platform/http/server.h"

namespace tutti::http {

// `fd` stays the caller's to close, and is one of `open`. Serves requests until the client goes,
// asks to close, breaks the protocol or is idle too long. `stop_fd` becomes readable and `stopping`
// true when the server stops: an idle connection ends at once, one with a request in work after its
// answer. Does not throw.
void ServeConnection(int fd, const std::string& peer, const ServerOptions& options,
                     const Handler& handler, OpenConnections& open, int stop_fd,
                     const std::atomic<bool>& stopping);

}  // namespace tutti::http
