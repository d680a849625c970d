// The channels between the ranks that have met: shared memory between ranks of one node, TCP
// between nodes, unless the options say otherwise.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/rendezvous/message.h"
#include "runtime/comm/rendezvous/socket.h"
#include "runtime/comm/transport/transport.h"

namespace tutti::comm {

// Where the ranks of higher number will connect to. Opened before the rendezvous, told in Hello.
struct Listeners {
  base::UniqueFd tcp;
  base::UniqueFd local;
};

// Fills in `hello`'s address, port, local_name and host.
absl::StatusOr<Listeners> OpenListeners(const GroupOptions& options, Hello& hello);

// Whether two ranks share memory: both may, on the same node and host. InvalidArgument if one
// insists and they cannot.
absl::StatusOr<bool> SharesMemory(const Hello& a, const Hello& b);

// The channels of `rank`, one for each rank that `peers` says, else null; who is a peer is mutual.
// A rank connects to the lower ones, in order, and then waits for the higher ones; by induction
// over the rank every connection is accepted. Cancelled when `patience.interrupt` says that the
// group has ended meanwhile.
absl::StatusOr<std::vector<std::unique_ptr<Channel>>> ConnectChannels(
    const Table& table, int rank, const std::vector<bool>& peers, absl::string_view token,
    const Listeners& listeners, const Patience& patience);

}  // namespace tutti::comm
