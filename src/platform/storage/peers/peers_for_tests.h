// Makes what tests of nodes that share what they fetch need: bytes, a port, the nodes' addresses.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/test_patience.h"
#include "base/unique_fd.h"
#include "platform/storage/storage_request.h"

namespace tutti::storage {

// Bytes that differ from piece to piece, and with `seed`.
inline std::string PieceBytes(size_t count, int seed = 7) {
  std::string bytes;
  for (size_t i = 0; i < count; ++i) {
    bytes.push_back(static_cast<char>(i * static_cast<size_t>(seed) + i / 1000));
  }
  return bytes;
}

// Returns a port at which nobody listens just now, and that the system gives to no connection by
// itself: below its range for those.
inline int FreePort() {
  constexpr unsigned kFirst = 10000, kMany = 22000;
  static std::atomic<unsigned> next = static_cast<unsigned>(::getpid()) * 2999;
  while (true) {
    const unsigned port = kFirst + next++ % kMany;
    const base::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = htons(static_cast<uint16_t>(port));
    if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&name), sizeof name) == 0) {
      return static_cast<int>(port);
    }
  }
}

// Nodes that have an address of the loopback each.
inline Peers PeersOf(int node, int nodes, int port) {
  Peers peers{.node = node, .port = port, .token = "the job's"};
  for (int i = 0; i < nodes; ++i) peers.addresses.push_back(absl::StrCat("127.0.0.", i + 1));
  peers.first_contact = base::Patient(absl::Seconds(20));
  return peers;
}

}  // namespace tutti::storage
