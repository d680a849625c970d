// Says whose process sends a request, by the kernel's table of sockets (sock_diag(7)): it is what
// keeps the portal's sessions from other users of the machine. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "http/message.h"

namespace tutti::api {

// A user of this machine, by number; nothing: of another machine.
using PeerUser = std::optional<uint32_t>;

// Returns the user whose process has the other end of the request's connection. Unauthenticated if
// that end is on this machine and the kernel names no process: one that has closed it is answered
// as root's, with no inode, and a kernel may lack sock_diag.
absl::StatusOr<PeerUser> UserOfPeer(const http::Request& request);

// Returns whether UserOfPeer knows this process; FailedPrecondition, with the reason, if the kernel
// does not answer.
absl::Status CheckPeersAreKnown();

}  // namespace tutti::api
