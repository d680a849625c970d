// Passes descriptors from rank to rank of one node, over Unix sockets. Functions are thread-safe.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "runtime/comm/rendezvous/wire/stream_socket.h"

namespace tutti::comm {

// Calls sendmsg(2) or recvmsg(2) with one descriptor beside the bytes. A descriptor of -1: none is
// sent; none has come, or several, of which none is kept.
ssize_t SendWithDescriptor(int socket, const void* bytes, size_t size, int descriptor, int flags);
ssize_t ReceiveWithDescriptor(int socket, void* bytes, size_t size, base::UniqueFd& descriptor,
                              int flags);

// Sends a descriptor alone.
absl::Status SendDescriptor(int socket, int descriptor, const Patience& patience);
absl::StatusOr<base::UniqueFd> ReceiveDescriptor(int socket, const Patience& patience);

// Sends any number, to one who awaits as many. Returns when the other side has them: a user may
// have no more descriptors under way than a process may have open, and where all ranks of a large
// node are sent those of all, they would be.
absl::Status SendDescriptors(int socket, std::span<const int> descriptors,
                             const Patience& patience);
absl::StatusOr<std::vector<base::UniqueFd>> ReceiveDescriptors(int socket, size_t count,
                                                               const Patience& patience);

}  // namespace tutti::comm
