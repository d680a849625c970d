// Decides over which transport two ranks talk. Both find it from what each of them said when they
// met, so both find the same, and every rank of a group finds the same fault, before anybody waits
// for a connection.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/unique_fd.h"
#include "runtime/comm/rendezvous/authenticate.h"
#include "runtime/comm/rendezvous/wire/control_message.h"
#include "runtime/comm/transport/transport.h"

namespace tutti::comm {

struct Route {
  enum class Kind { kSharedMemory, kTcp, kUcx } kind = Kind::kTcp;
  bool encrypted = false;
  int streams = 1;         // of TCP; 0: as many as a measurement says
  bool same_host = false;  // same machine and network namespace

  // Returns how many connections it takes.
  int Connections() const;
};

// Chooses how two ranks reach each other. InvalidArgument when the two insist on different things:
// one on shared memory that the other cannot share, one on UCX, TLS or a number of streams that the
// other does not know of, one on equal bits or compared calls and the other not; or when one wants
// what does not go together. Two ranks that insist on nothing and share no memory take UCX if both
// have RDMA, else TCP.
absl::StatusOr<Route> RouteBetween(const Hello& a, const Hello& b);

// Returns whether it is shared memory: both may, on the same node and host.
absl::StatusOr<bool> SharesMemory(const Hello& a, const Hello& b);

// Returns the channel over authenticated sockets, as many as the route takes, in the same order on
// both sides.
absl::StatusOr<std::unique_ptr<Channel>> MakeChannel(const Route& route,
                                                     std::vector<base::UniqueFd> sockets, Side side,
                                                     absl::string_view token,
                                                     const Patience& patience);

}  // namespace tutti::comm
