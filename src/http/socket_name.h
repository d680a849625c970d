// SocketName is an address of IPv4 or IPv6 with a port, as the kernel takes it, and its text:
// "127.0.0.1:6280", "[::1]:6280". A plain value.
#pragma once

#include <sys/socket.h>

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace tutti::http {

struct SocketName {
  sockaddr* address() { return reinterpret_cast<sockaddr*>(&storage); }
  const sockaddr* address() const { return reinterpret_cast<const sockaddr*>(&storage); }

  sockaddr_storage storage{};
  socklen_t size = sizeof(sockaddr_storage);
};

// Nothing if `address` is not a numeric one.
std::optional<SocketName> SocketNameOf(const std::string& address, int port);
// The same of what TextOf returns.
std::optional<SocketName> SocketNameOf(absl::string_view text);

// Returns whether a numeric address is one of this machine's interfaces'.
bool IsOfThisMachine(const std::string& address);

// Returns this end's name of a connection, or that at which a listener listens.
SocketName OwnName(int fd);

std::string AddressOf(const SocketName& name);  // "127.0.0.1", "::1"; "" of another family
int PortOf(const SocketName& name);
std::string TextOf(const SocketName& name);

}  // namespace tutti::http
