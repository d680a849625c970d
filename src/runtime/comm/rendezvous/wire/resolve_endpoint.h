// Resolves a host's name to socket addresses. Thread-safe.
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/comm/rendezvous/wire/stream_socket.h"

namespace tutti::comm {

struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t length = 0;
  int family() const { return storage.ss_family; }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

// Returns at least one address, in the system's order of preference; of the family of the numeric
// address `like`, unless that is "". A numeric address is taken as it stands. A name is looked up
// on a thread of its own, which is left behind when the patience ends: getaddrinfo(3) cannot be
// interrupted, and may take the better part of a minute where a name server is silent.
absl::StatusOr<std::vector<SocketAddress>> Resolve(const Endpoint& endpoint,
                                                   const std::string& like,
                                                   const Patience& patience);

}  // namespace tutti::comm
