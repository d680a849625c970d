// Makes IPv4 addresses and TCP sockets for what launchers serve to each other and to ranks.
// Thread-safe.
#pragma once

#include <netinet/in.h>

#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace tutti::launch {

// Returns the socket address of a numeric address; else InvalidArgument.
absl::StatusOr<sockaddr_in> AddressOf(const std::string& address, int port);
// Writes the address: "127.0.0.1"
std::string AddressText(const sockaddr_in& address);

// Makes a socket that is non-blocking and closed on exec.
absl::StatusOr<base::UniqueFd> TcpSocket();
// Prepares connections that carry short messages and may be silent for long: what is sent goes at
// once, and a far end that is gone without a word is found in the end.
void KeepAlive(int fd);

}  // namespace tutti::launch
